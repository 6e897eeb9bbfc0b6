// Runs the program of the tester's page in Node: reads requests from standard input, and writes the answers to standard output.
//
// Usage: node robotsd/tests/tester.mjs PAGE
import { readFileSync, writeSync } from "node:fs";
import { runInThisContext } from "node:vm";

const script = /<script>([^]*)<\/script>/.exec(readFileSync(process.argv[2], "utf8"))[1];
runInThisContext(script);
const answers = await runInThisContext("async (input) => run(await compiled(), input)")(readFileSync(0));
for (let at = 0; at < answers.length; ) {
  try {
    at += writeSync(1, answers, at);
  } catch (error) {
    // The reader of a pipe may be slower than this program.
    if (error.code !== "EAGAIN") throw error;
  }
}
