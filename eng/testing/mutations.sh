#!/usr/bin/env bash
# mutations.sh N SEED: draws N faults from src and native, and counts those that the inner loop finds. Started by
# `eng/test --mutations`; belongs to no loop.
#
# A fault changes one line of the committed sources: it negates a condition, exchanges an operator or a constant, or omits a
# call. One that does not compile is drawn again. Each is tested in a copy of the sources, until the first failure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=eng/prerequisites.sh
source eng/prerequisites.sh
readonly count=$1 seed=$2
readonly place=$PWD/artifacts/mutations
readonly tree=$place/tree

# Prints every possible fault as FILE, LINE and the changed line, separated by tabs.
list_faults() {
    git ls-files 'src/*.cs' 'native/*.c' | grep -v '^native/\(tests\|fuzz\)/' | while read -r file; do
        awk -v file="$file" '
            function fault(changed) { if (changed != $0) print file "\t" FNR "\t" changed }
            function exchange(from, to,    at) {
                at = index($0, from)
                if (at) fault(substr($0, 1, at - 1) to substr($0, at + length(from)))
            }
            /^[ \t]*(\/\/|\/\*|\*|#|\[)/ || /(const |throw |LogMessage|\?\? throw)/ { next }
            match($0, /^[ \t]*(else )?if \(.*\)[ \t]*\{?$/) {
                at = index($0, "(")
                end = match($0, /\)[ \t]*\{?$/)
                fault(substr($0, 1, at) "!(" substr($0, at + 1, end - at - 1) ")" substr($0, end))
            }
            { exchange(" == ", " != "); exchange(" != ", " == "); exchange(" && ", " || "); exchange(" || ", " && ")
              exchange(" < ", " >= "); exchange(" > ", " <= "); exchange(" <= ", " > "); exchange(" >= ", " < ")
              exchange(" + ", " - "); exchange("return true;", "return false;"); exchange("return false;", "return true;") }
            /^[ \t]+[A-Za-z_][A-Za-z0-9_.?!]*\([^=]*\);$/ { fault("") }
        ' "$file"
    done
}

# Shuffles the lines of stdin by the seed.
shuffle() { awk -v seed="$seed" 'BEGIN { srand(seed) } { printf "%.9f\t%s\n", rand(), $0 }' | sort -n | cut -f2-; }

# apply FILE LINE TEXT
apply() { awk -v line="$2" -v text="$3" 'FNR == line { $0 = text } { print }' "$tree/$1" > "$place/changed" && cat "$place/changed" > "$tree/$1"; }

need_dotnet
need jq jq
git diff --quiet HEAD -- || fail 'the sources have changes: commit them first, because each fault is put into the last commit'
rm -rf "$place"
mkdir -p "$place"
git clone --quiet "$PWD" "$tree"
step 'the sources without a fault'
(cd "$tree" && eng/native --rid all && dotnet build KernelTls.slnx --configuration Release --verbosity quiet --nologo)
drawn=0
found=0
while IFS=$'\t' read -r file line text && [ "$drawn" -lt "$count" ]; do
    git -C "$tree" checkout --quiet -- .
    apply "$file" "$line" "$text"
    change=$(git -C "$tree" diff --unified=0 -- "$file" | tail -n +6)
    log=$place/$((drawn + 1)).log
    begun=$SECONDS
    code=0
    (cd "$tree" && exec eng/test --first-failure) > "$log" 2>&1 < /dev/null || code=$?
    # No summary: it did not build.
    if ! grep -qE '^[0-9]+ passed, [0-9]+ failed' "$log"; then
        printf -- '-- does not build: %s:%s\n%s\n' "$file" "$line" "$change"
        continue
    fi
    drawn=$((drawn + 1))
    verdict=missed
    [ "$code" = 0 ] || { found=$((found + 1)); verdict=found; }
    printf '== %s of %s: %s after %s s, by %s\n%s:%s\n%s\n' "$drawn" "$count" "$verdict" $((SECONDS - begun)) \
        "$(grep -m 1 '^### ' "$log" || echo nothing)" "$file" "$line" "$change"
done < <(list_faults | shuffle)
printf '%s of %s faults found\n' "$found" "$drawn"
