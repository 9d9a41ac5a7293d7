"""What PRISMA is measured by: workloads, contenders, storage, and the rule that judges."""
