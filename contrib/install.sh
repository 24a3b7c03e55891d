#!/bin/sh
# Installs Kumulus @VERSION@ for this user: a Python environment in ~/.local/share/kumulus, and the command in ~/.local/bin.
# Every package is known by its hash, in requirements.txt of the same release. Again, it installs nothing twice; another
# version's script replaces this one's command. To remove it: kumulus uninstall, then delete the two.
#
#   PYTHON            an interpreter, 3.11 or later; python3 otherwise
#   KUMULUS_PREFIX    instead of ~/.local
#   KUMULUS_RELEASES  where the releases' files are, such as a mirror's address
set -eu

fail() {
  echo "error: $1" >&2
  exit 1
}

python=${PYTHON:-python3}
prefix=${KUMULUS_PREFIX:-$HOME/.local}
environment=$prefix/share/kumulus/@VERSION@
url=${KUMULUS_RELEASES:-@REPOSITORY@/releases/download}/v@VERSION@/requirements.txt

"$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
  fail "$python is no Python 3.11 or later that can make environments (Debian: apt install python3-venv); PYTHON can name one"
for command in curl sha256sum; do
  command -v "$command" >/dev/null || fail "$command is missing; install it first"
done

lock=$(mktemp)
trap 'rm -f "$lock"' EXIT
curl --fail --silent --show-error --location --output "$lock" "$url" || fail "$url cannot be fetched; try again"
echo "@REQUIREMENTS_SHA256@  $lock" | sha256sum --check --status || fail "$url is not what was released; nothing was installed"
[ -x "$environment/bin/python" ] || "$python" -m venv "$environment"
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock" ||
  fail "pip could not install it; the next run goes on"
mkdir -p "$prefix/bin"
ln -sfn "$environment/bin/kumulus" "$prefix/bin/kumulus"
"$prefix/bin/kumulus" --version
case :$PATH: in
*":$prefix/bin:"*) ;;
*) echo "put $prefix/bin on your PATH, then: kumulus new my-fleet" ;;
esac
