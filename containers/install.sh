#!/bin/sh
# Install iosig with the dependencies of uv.lock: `install.sh SOURCE PREFIX`. Both container images run it.
# SOURCE is a checkout. PREFIX becomes an environment with PREFIX/bin/iosig; nothing else remains.
set -eu
source=$1
prefix=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/uv"
"$work/uv/bin/pip" install --quiet --no-cache-dir --disable-pip-version-check uv
# compiled bytecode halves the start of each command, and a container cannot keep it
UV_PROJECT_ENVIRONMENT=$prefix UV_CACHE_DIR=${UV_CACHE_DIR:-$work/cache} "$work/uv/bin/uv" sync \
    --project "$source" --quiet --frozen --no-dev --no-editable --compile-bytecode --link-mode copy --python python3
"$prefix/bin/iosig" --version
