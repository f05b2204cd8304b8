# shellcheck shell=bash
# Sourced by the commands in eng/. Checks or installs what a command needs, or prints one line that says how to install
# it.

# fail MESSAGE: ends the command because a prerequisite is missing, with exit code 2.
fail() {
    printf '%s: %s\n' "${0##*/}" "$1" >&2
    exit 2
}

# step MESSAGE: prints the current step.
step() {
    printf '== %s\n' "$1"
}

# need COMMAND PACKAGE: installs the Debian package if the command is missing.
need() {
    command -v "$1" > /dev/null && return
    [ "$(id -u)" = 0 ] || fail "$1 is missing; install it as root: apt-get install -y $2"
    step "installing $2, for $1"
    install_packages "$2" || fail "$1 is missing and could not be installed: apt-get install -y $2"
}

# install_packages PACKAGE…: installs packages with a time limit and one retry, because an archive may stall. Commands that
# run beside each other install one after the other.
install_packages() {
    local attempt
    for attempt in 1 2; do
        [ "$attempt" = 1 ] || flock /var/lib/dpkg timeout 120 apt-get update -q > /dev/null || return 1
        DEBIAN_FRONTEND=noninteractive flock /var/lib/dpkg timeout 300 apt-get install -qqy --no-install-recommends "$@" > /dev/null && return 0
    done
    return 1
}

# need_dotnet: checks for the SDK that global.json requires.
need_dotnet() {
    command -v dotnet > /dev/null || fail 'dotnet is missing: install the .NET 10 SDK and put it on PATH'
    dotnet --version > /dev/null 2>&1 || fail "no .NET SDK fits global.json ($(dotnet --list-sdks | tr '\n' ' ')): install the .NET 10 SDK"
}

# host_has_ktls: returns whether this machine's kernel has kernel TLS or can load it.
host_has_ktls() {
    local file=/proc/sys/net/ipv4/tcp_available_ulp
    grep -qw tls "$file" 2> /dev/null && return
    [ "$(id -u)" = 0 ] && modprobe tls 2> /dev/null && grep -qw tls "$file" 2> /dev/null
}
