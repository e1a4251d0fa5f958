#!/bin/sh
# The site's tests run in a real Chromium: install Debian's or Ubuntu's when root, else name it.
set -eu

for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null && exit 0
done
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "epochcost: installing chromium"
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends chromium >/dev/null
else
    echo "epochcost: the tests need Chromium; install it with: sudo apt-get install chromium" >&2
    exit 3
fi
