# shellcheck shell=bash
# Sourced by eng/test: defines which tests run where. A suite is a line
#
#   PROJECT MODES [NAME…]
#
# with a test project, its modes (KERNELTLS_MODES, or - for the default), and the names of classes, or of methods as
# CLASS.METHOD, if only a part of it runs. !NAME excludes tests. A method's name may end in *.
# shellcheck disable=SC2034 # eng/test reads the lists

readonly every_mode=Stock,DirectOpenSsl,Kernel

# The tests of packages that also run in the cells. On this machine they publish the applications, so they run here first.
readonly package_tests='ZeroCodeTests.* WeaveTests.A_package_and_an_item_put_Npgsql_on_OpenSSL_or_into_the_kernel'\
' WeaveTests.A_reverse_proxy_has_both_its_sides_on_OpenSSL_or_in_the_kernel'\
' WeaveTests.Trimmed_in_a_single_file_with_the_runtime_in_it WeaveTests.Compiled_to_native_code'

# On this machine: the tests that need no kernel TLS, in the modes that need none.
host_suites=(
    # First, because the cells need its output.
    'KernelTls.PackageTests -'
    # Two halves that take about the same time.
    'KernelTls.AspNetCore.Tests - !CloseTests !ClientLeavesTests !FileFailureTests !DifficultClientTests'
    'KernelTls.AspNetCore.Tests - CloseTests ClientLeavesTests FileFailureTests DifficultClientTests'
    'KernelTls.ConformanceTests -'
    'KernelTls.UnitTests -'
    'KernelTls.Weave.Tests -'
    'KernelTls.Bench.Tests -'
    'KernelTls.LoadTest.Tests -'
    'KernelTls.Tool.Tests -'
    # The libraries that need no server of the distribution. The others run in the cells.
    'KernelTls.LibraryTests - KnownWrapperTests HttpClientTests YarpTests GrpcTests MqttTests MongoTests'
)

# The same on .NET 11, for tests that need no SDK.
host_suites_11=(
    'KernelTls.AspNetCore.Tests -'
    'KernelTls.ConformanceTests -'
    'KernelTls.UnitTests -'
    'KernelTls.Weave.Tests -'
    'KernelTls.Bench.Tests - RowTests CompilerClockTests'
    'KernelTls.Tool.Tests -'
)

# The suites that a cell also runs on .NET 11, unless a single runtime is requested.
readonly parts_on_11=(peers streams programs)

# The duration and the processor share of the soak test: small, because it runs beside other parts.
readonly soak_minutes=3 soak_cores=0.4

# The parts of a full cell, in the order of their duration.
readonly full_parts=(peers streams programs libraries tools)

# The additional parts of a requested cell.
readonly costly_parts=(more-libraries)

# suites_of PART ENGINE CELL RUNTIME: prints the suites of one part of a cell, which run one after the other in one boot.
suites_of() {
    # User-Mode Linux has no MPTCP.
    local without=''
    [ "$2" != uml ] || without='!SocketLayerTests.MPTCP_*'
    # The OpenSMTPD of Debian 12 cannot shake hands on its OpenSSL.
    local mail=''
    [[ $3 != bookworm-* ]] || mail='!SmtpTests'
    # Peers meet the same behaviour in the other modes on both runtimes.
    local peers_modes=$every_mode
    [ "$4" = 10 ] || [ "$runtime" != default ] || peers_modes=Kernel
    case $1 in
        # The stream contract and Kestrel in the other modes, SslStream and OpenSSL without the kernel, are tested on
        # this machine.
        streams) echo "KernelTls.ConformanceTests Kernel $without" ;;
        peers) echo "KernelTls.FunctionalTests $peers_modes" ;;
        programs)
            echo "KernelTls.AspNetCore.Tests Kernel !ChromiumTests"
            echo "KernelTls.PackageTests $every_mode $package_tests"
            echo "KernelTls.Weave.Tests $every_mode WovenProgramTests" ;;
        # Woven libraries with the distribution's servers. Without the variable only what costs little; RabbitMQ takes long to start.
        libraries)
            echo "KernelTls.LibraryTests Kernel !RabbitTests $mail"
            echo 'KernelTls.LibraryTests Stock HttpClientTests MqttTests'
            # The benchmark's rows of libraries. OpenSSL 3.0 (Debian 12) does not put both directions into the kernel.
            [[ $3 == bookworm-* ]] || echo 'KernelTls.Bench.Tests - LibraryRowTests' ;;
        more-libraries)
            echo 'KernelTls.LibraryTests Kernel RabbitTests'
            echo "KernelTls.LibraryTests Stock !HttpClientTests !MqttTests $mail" ;;
        tools)
            echo "KernelTls.LoadTest.Tests $every_mode ScenarioTests RehearsalTests"
            echo "KernelTls.Tool.Tests $every_mode InfoTests ProbeTests ConnectTests ServeTests TopTests BenchTests PrivilegeTests" ;;
        # The tests that depend on the kernel and on OpenSSL: the shim, the data path of a connection, keys, control
        # records, Kestrel by the kernel's own counters, and the tool's report of them.
        smoke)
            echo "KernelTls.FunctionalTests $every_mode OffloadTests DirectionTests ExpectNoPaddingTests SilentFallbackTests" \
                "SendFileTests KeyUpdateTests RekeyGapTests ResetTests PostHandshakeInteropTests"
            echo "KernelTls.AspNetCore.Tests $every_mode KernelTests OpenSslClientTests"
            echo "KernelTls.Tool.Tests $every_mode InfoTests" ;;
        # Connections without the module, and what a thousand of them leave behind.
        no-tls-module)
            echo "KernelTls.ConformanceTests $every_mode ModuleMissingTests.* LeakTests.Fallbacks_leave_nothing_behind"
            echo "KernelTls.AspNetCore.Tests $every_mode ModuleMissingTests"
            echo "KernelTls.Tool.Tests $every_mode ModuleMissingTests" ;;
        # Not available on User-Mode Linux: two processors, so that threads of one process race, and MPTCP.
        race)
            echo 'KernelTls.ConformanceTests Kernel ConcurrencyTests CancellationTests DisposeTests KeyChangeWaitTests'
            echo 'KernelTls.ConformanceTests Kernel SocketLayerTests.MPTCP_*'
            echo 'KernelTls.FunctionalTests Kernel KeyUpdateTests'
            echo 'KernelTls.AspNetCore.Tests Kernel ShutdownTests StreamingCallTests GatheringTests' ;;
    esac
}

# Returns whether a part also runs the native tests, without a filter.
has_native_tests() { [ "$1" = streams ] || [ "$1" = smoke ]; }

# Prints the full names of a project's classes and methods, as far as they can be found in its text.
test_names() {
    awk '
        /^namespace / { space = $2; sub(/;.*/, "", space) }
        match($0, /(^|[ \t])class [A-Za-z0-9_]+/) {
            type = substr($0, RSTART, RLENGTH); sub(/.*class /, "", type); print space "." type; next
        }
        type != "" && match($0, /^    (public|internal|protected)[^(=]* [A-Za-z0-9_]+\(/) {
            method = substr($0, RSTART, RLENGTH - 1); sub(/.* /, "", method); print space "." type "." method
        }' "tests/$1"/*.cs
}

# hits SUITE…: returns whether the filter matches any of these suites.
hits() {
    local suite arguments
    for suite in "$@"; do
        ! select_tests "$suite" || return 0
    done
    return 1
}

# select_tests SUITE: stores the arguments of the suite's program, restricted by the filter, in the array `arguments`.
# Returns 1 if nothing remains.
select_tests() {
    local project name names='' classes=() methods=() wanted=() without=()
    read -r project _ names <<< "$1"
    set -f
    for name in $names; do
        case $name in
            '!'*.*) without+=(-method- "*.${name#!}") ;;
            '!'*) without+=(-class- "*.${name#!}") ;;
            *.*) methods+=("$name") ;;
            *) classes+=("$name") ;;
        esac
    done
    set +f
    arguments=()
    if [ -z "$filter" ]; then
        for name in "${classes[@]}"; do arguments+=(-class "*.$name"); done
        for name in "${methods[@]}"; do arguments+=(-method "*.$name"); done
        arguments+=("${without[@]}")
        return 0
    fi
    mapfile -t wanted < <(test_names "$project" | grep -iF -- "$filter")
    [ "${#wanted[@]}" != 0 ] || return 1
    if [ "${#methods[@]}" != 0 ]; then
        # The program would run the union of both. So the tests that match both are named one by one.
        local method
        for method in "${methods[@]}"; do
            # shellcheck disable=SC2053 # a pattern
            for name in "${wanted[@]}"; do [[ $name != *.$method ]] || arguments+=(-method "$name"); done
        done
        [ "${#arguments[@]}" != 0 ]
        return
    fi
    if [ "${#classes[@]}" != 0 ]; then
        local class found=no
        for class in "${classes[@]}"; do
            for name in "${wanted[@]}"; do [[ $name. != *.$class.* ]] || found=yes; done
            arguments+=(-class "*.$class")
        done
        [ $found = yes ] || return 1
    fi
    arguments+=(-method "*$filter*" "${without[@]}")
}
