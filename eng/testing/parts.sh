# shellcheck shell=bash
# Sourced by eng/test: runs parts of the tests beside each other, and stores what each of them produced.
#
# A part is a command with a title. Its directory below $results holds
#   title, code, seconds, processor    its name, exit code, elapsed time, and the seconds of processors that it used
#   log                                its output
#   *.json                             the results of its test programs in the Common Test Report Format
#   expected                           the number of these files, if the part runs test programs

# The results of the last run.
readonly results=artifacts/test-results

# The running parts: process id, and slot and directory.
declare -A running=()
# The parts that have not begun, in this order: SLOT, AFTER, DIRECTORY and COMMAND (words for eval), separated by tabs.
parts=()
# Whether the run ends with the first part that fails.
first_failure=no

# Removes the results of an earlier run.
begin_results() {
    rm -rf "$results"
    mkdir -p "$results"
}

# part_directory TITLE: prints the directory of a part.
part_directory() { printf '%s/%s' "$results" "$(printf '%s' "$1" | tr -c 'A-Za-z0-9.\n' - | tr -s - -)"; }

# add_part SLOT AFTER TITLE EXPECTED COMMAND…: adds a part that writes EXPECTED files of results into its directory, which
# is the variable $part_results of its command. `slots` says how many parts of a slot run at a time. A part of the
# slot `idle` runs beside the others and is not counted. A part begins after the part with the title AFTER has ended,
# or at any time for -.
add_part() {
    local directory
    directory=$(part_directory "$3")
    mkdir "$directory"
    printf '%s\n' "$3" > "$directory/title"
    printf '%s\n' "$4" > "$directory/expected"
    parts+=("$1"$'\t'"$2"$'\t'"$directory"$'\t'"$(printf '%q ' "${@:5}")")
}

# Returns whether the part with this title has not begun or not ended.
is_due() {
    local part directory
    directory=$(part_directory "$1")
    for part in "${parts[@]}"; do
        [[ $part != *$'\t'"$directory"$'\t'* ]] || return 0
    done
    [[ " ${running[*]} " == *" $directory "* ]]
}

# Waits for one of the running parts, prints its output, and returns whether it passed.
collect_part() {
    local ended directory
    [ "${#running[@]}" != 0 ] || fail 'no part can begin: each waits for another one'
    wait -n -p ended "${!running[@]}" || true
    directory=${running[$ended]#* }
    unset "running[$ended]"
    step "$(cat "$directory/title")"
    cat "$directory/log"
    part_passed "$directory"
}

# part_passed DIRECTORY: returns whether a part succeeded and left all its results.
part_passed() {
    local files=("$1"/*.json)
    [ -e "${files[0]}" ] || files=()
    [ "$(cat "$1/code")" = 0 ] && [ "${#files[@]}" = "$(cat "$1/expected")" ]
}

# timed DIRECTORY COMMAND: stores the exit code, the elapsed time and the processor time of a command.
timed() {
    local begun=$SECONDS code=0
    # shellcheck disable=SC2034 # for the command
    local part_results=$1
    eval "$2" || code=$?
    printf '%s\n' "$code" > "$1/code"
    printf '%s\n' $((SECONDS - begun)) > "$1/seconds"
    # Not in a pipe: a shell knows only the times of its direct children.
    times > "$1/times"
    awk -F '[ms ]+' 'NR == 2 { printf "%.0f\n", $1 * 60 + $2 + $3 * 60 + $4 }' "$1/times" > "$1/processor"
    printf -- '-- took %s s, and %s s of processors\n' "$(cat "$1/seconds")" "$(cat "$1/processor")"
}

# Tests mostly wait. User-Mode Linux has one processor; parts on this machine and in an emulated machine use both.
readonly most_parts=4
declare -A slots=([host]=2 [emulated]=1 [uml]=$most_parts [idle]=1)

# Returns whether one more part may begin.
has_room() { [ "$(printf '%s\n' "${running[@]}" | grep -cE '^(host|emulated|uml) ')" -lt "$most_parts" ]; }

# begin_part SLOT DIRECTORY COMMAND
begin_part() {
    printf -- '-- begins: %s\n' "$(cat "$2/title")"
    timed "$2" "$3" > "$2/log" 2>&1 < /dev/null &
    running[$!]="$1 $2"
}

# Begins the parts that can begin now.
begin_parts() {
    local slot after directory command index
    for index in "${!parts[@]}"; do
        IFS=$'\t' read -r slot after directory command <<< "${parts[$index]}"
        [ "$slot" = idle ] || has_room || continue
        [ "$after" = - ] || ! is_due "$after" || continue
        [ "$(printf '%s\n' "${running[@]}" | grep -c "^$slot ")" -lt "${slots[$slot]}" ] || continue
        begin_part "$slot" "$directory" "$command"
        unset "parts[$index]"
    done
}

# Runs all parts. With first_failure, stops the rest when one has failed.
run_parts() {
    while [ "${#parts[@]}" != 0 ] || [ "${#running[@]}" != 0 ]; do
        begin_parts
        collect_part || [ $first_failure = no ] || { stop_parts; return; }
    done
}

# Ends the running parts, and forgets the others.
stop_parts() {
    parts=()
    [ "${#running[@]}" = 0 ] || kill "${!running[@]}" 2> /dev/null || true
    running=()
}

# Prints one JSON object for each part that has ended. A command that is no test program ends with a line of counts; if
# there are several, the last one is the total.
read_parts() {
    local directory counts files
    for directory in "$results"/*/; do
        [ -e "$directory/code" ] || continue
        counts=$(sed 's/\x1b\[[0-9;]*m//g' "$directory/log" | grep -aE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' | tail -n 1 || true)
        files=("$directory"*.json)
        [ -e "${files[0]}" ] || files=()
        cat "${files[@]}" < /dev/null | jq -cs --arg title "$(cat "$directory/title")" --argjson code "$(cat "$directory/code")" \
            --argjson seconds "$(cat "$directory/seconds")" --argjson processor "$(cat "$directory/processor")" \
            --argjson expected "$(cat "$directory/expected")" --arg counts "$counts" \
            --arg said "$(said_by "$directory/log")" \
            '{$title, $code, $seconds, $processor, $expected, $counts, $said, suites: .}'
    done
}

# said_by LOG: prints the lines of a log that report failures, or its last lines.
said_by() {
    sed 's/\x1b\[[0-9;]*m//g' "$1" | grep -aA7 -E '^(failed|FAILED) |^lab: ' | head -n 60 || tail -n 30 "$1"
}

# Writes the summary of the run, prints what failed, and the counts as the last line. Returns whether all passed.
sum_up() {
    local totals seconds=$((SECONDS - begun))
    read_parts > "$results/parts"
    summarize summary > "$results/summary.md"
    summarize 'failures | join("\n\n")'
    totals=$(summarize 'totals | "\(.passed) passed, \(.failed) failed, \(.skipped) skipped"')
    printf -- '-- %s: %s s, %s s of processors\n' "$results/summary.md" "$seconds" "$(processor_seconds)"
    printf '%s\n' "$totals"
    [[ $totals == *' 0 failed'* && $totals != 0\ passed*\ 0\ skipped ]]
}

processor_seconds() { cat "$results"/*/processor | awk '{ sum += $1 } END { print sum + 0 }'; }

# summarize EXPRESSION: prints the value of an expression of summary.jq over all parts.
summarize() {
    jq -rs -L eng/testing --arg filter "$filter" --argjson seconds "$seconds" --argjson processor "$(processor_seconds)" \
        "include \"summary\"; $1" "$results/parts"
}
