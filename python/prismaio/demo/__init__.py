"""What `prismaio demo` shows: a model trained from slow storage, plainly and through PRISMA."""
