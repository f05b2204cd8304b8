# Sums up a run of eng/test as Markdown. The input is an object for each part, as read_parts in parts.sh prints it; the
# arguments are $filter, $seconds and $processor. `totals` alone is the last line of eng/test.

def tests: [.suites[] | .results.tests[]];
# The counts that a command printed, or null.
def printed: .counts | capture("^(?<passed>\\d+) passed, (?<failed>\\d+) failed, (?<skipped>\\d+) skipped$")? // null | if . then map_values(tonumber) else . end;
def counted($status): [tests[] | select(.status == $status)] | length;
# A test program that ended without a result, or whose results do not explain its exit code, is a failure of its own.
def part:
    (printed // {passed: 0, failed: 0, skipped: 0}) as $printed
    | . + {
        passed: ($printed.passed + counted("passed")),
        failed: ($printed.failed + counted("failed") + counted("other")),
        skipped: ($printed.skipped + counted("skipped") + counted("pending")),
    }
    | .broken = (
        if (.suites | length) < .expected then "\(.expected - (.suites | length)) of its \(.expected) test programs left no result"
        elif .expected == 0 and printed == null then "it printed no counts"
        elif .code != 0 and .failed == 0 then "its exit code is \(.code), and no test failed"
        elif .passed + .failed + .skipped == 0 and $filter == "" then "no test ran"
        else null end)
    | if .broken then .failed += 1 else . end;

def totals:
    map(part) | {passed: (map(.passed) | add), failed: (map(.failed) | add), skipped: (map(.skipped) | add)}
    | map_values(. // 0);

def code_block: "```text\n" + (. | gsub("```"; "'''")) + "\n```";
def cut($most): if length > $most then .[:$most] + "\n[…]" else . end;
def seconds: . / 100 | round / 10 | tostring;

def failures:
    [.[] | . as $part
        | (if .broken then "### \(.title): \(.broken)\n\n" + (.said | cut(6000) | code_block) else empty end),
          (if (printed.failed // 0) > 0 and (.broken | not) then "### \(.title)\n\n" + (.said | cut(6000) | code_block) else empty end),
          (tests[] | select(.status == "failed" or .status == "other")
            | "### \(.name)\n\n\($part.title)\n\n"
                + (([.message, .trace] + (.stdout // []) | map(select(. != null)) | join("\n")) | cut(4000) | code_block))];

def summary:
    totals as $totals | map(part)
    | "# Tests: \(if $totals.failed == 0 then "passed" else "FAILED" end)\n",
      "\($totals.passed) passed, \($totals.failed) failed, \($totals.skipped) skipped; \($seconds / 6 | round / 10) minutes, \($processor) s of processors.\n",
      (failures | if length > 0 then "## Failures\n\n" + join("\n\n") + "\n" else empty end),
      "## Parts\n\n| part | passed | failed | skipped | seconds | of processors |\n|---|---|---|---|---|---|",
      (sort_by(-.seconds)[] | "| \(.title) | \(.passed) | \(.failed) | \(.skipped) | \(.seconds) | \(.processor) |"),
      "\n## The slowest tests\n\n| test | part | seconds |\n|---|---|---|",
      ([.[] | .title as $title | tests[] | {name, $title, duration}] | sort_by(-.duration)[:10][]
        | "| \(.name | gsub("\\|"; "\\|")) | \(.title) | \(.duration | seconds) |");
