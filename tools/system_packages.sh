#!/usr/bin/env bash
# Sees to the system packages that a purpose needs: installs them when root on Debian or Ubuntu, and
# otherwise says what is missing and how to get it.
#
#   tools/system_packages.sh build|test
set -euo pipefail

compiles() { echo "$1" | g++ -x c++ -std=c++20 -fsyntax-only - 2>/dev/null; }
has() { command -v "$1" >/dev/null; }

# package, then the command that succeeds when it is there
build_packages=(
  "g++|compiles '#include <span>'"
  "cmake|has cmake"
  "ninja-build|has ninja"
  "pkg-config|has pkg-config"
  "ccache|has ccache"
  "libfuse3-dev|pkg-config --exists fuse3"
  "fuse3|has fusermount3"
  "python3-venv|\"${PYTHON:-python3}\" -c 'import ensurepip, venv'"
)
test_packages=(
  "git|has git"
  "libgtest-dev|compiles '#include <gtest/gtest.h>'"
  "libgmock-dev|compiles '#include <gmock/gmock.h>'"
  "strace|has strace"
)

missing() {
  local entry
  for entry in "$@"; do
    eval "${entry#*|}" >/dev/null 2>&1 || echo "${entry%%|*}"
  done
}

case "${1:-}" in
  build) wanted=("${build_packages[@]}") ;;
  test) wanted=("${build_packages[@]}" "${test_packages[@]}") ;;
  *)
    echo "usage: $0 build|test" >&2
    exit 2
    ;;
esac

mapfile -t absent < <(missing "${wanted[@]}")
if [ "${#absent[@]}" -gt 0 ] && [ "$(id -u)" -eq 0 ] && has apt-get; then
  echo "installing ${absent[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get -q -o DPkg::Lock::Timeout=300 update </dev/null >/dev/null
  apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends "${absent[@]}" \
    </dev/null >/dev/null
  mapfile -t absent < <(missing "${wanted[@]}")
fi

if [ "${#absent[@]}" -gt 0 ]; then
  {
    echo "PRISMA needs what these Debian packages hold, and this machine has not: ${absent[*]}"
    echo "On Debian or Ubuntu:  sudo apt-get install ${absent[*]}"
    echo "Elsewhere the same things go by similar names."
  } >&2
  exit 1
fi
