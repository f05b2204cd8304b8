# shellcheck shell=bash
# Sourced by the commands in eng/: what a command needs is there, or is installed, or one line says how to get it.

# fail MESSAGE: ends the command for want of something, with exit code 2.
fail() {
    printf '%s: %s\n' "${0##*/}" "$1" >&2
    exit 2
}

# step MESSAGE: says what is being done.
step() {
    printf '== %s\n' "$1"
}

# need COMMAND PACKAGE: installs the Debian package where the command is missing.
need() {
    command -v "$1" > /dev/null && return
    [ "$(id -u)" = 0 ] || fail "$1 is missing; install it as root: apt-get install -y $2"
    step "installing $2, for $1"
    install_packages "$2" || fail "$1 is missing and could not be installed: apt-get install -y $2"
}

# install_packages PACKAGE…: with a time limit and one more try, because an archive may stall.
install_packages() {
    local attempt
    for attempt in 1 2; do
        [ "$attempt" = 1 ] || timeout 120 apt-get update -q > /dev/null || return 1
        DEBIAN_FRONTEND=noninteractive timeout 300 apt-get install -qqy --no-install-recommends "$@" > /dev/null && return 0
    done
    return 1
}

# need_dotnet: the SDK that global.json asks for.
need_dotnet() {
    command -v dotnet > /dev/null || fail 'dotnet is missing: install the .NET 10 SDK and put it on PATH'
    dotnet --version > /dev/null 2>&1 || fail "no .NET SDK fits global.json ($(dotnet --list-sdks | tr '\n' ' ')): install the .NET 10 SDK"
}

# host_has_ktls: this machine's own kernel has kernel TLS, or can be made to have it.
host_has_ktls() {
    local file=/proc/sys/net/ipv4/tcp_available_ulp
    grep -qw tls "$file" 2> /dev/null && return
    [ "$(id -u)" = 0 ] && modprobe tls 2> /dev/null && grep -qw tls "$file" 2> /dev/null
}
