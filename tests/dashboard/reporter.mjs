// Prints each test as a line, what failed with its cause, and the sum in the form `cargo xtask`
// adds up. A test that is skipped or left for later counts as failed: nothing is left out silently.

export default async function* reporter(events) {
  let passed = 0;
  let failed = 0;
  for await (const { type, data } of events) {
    // Suites are reported like tests, after the tests they hold.
    if (data?.details?.type === "suite") continue;
    if (type === "test:pass" && data.skip === undefined && data.todo === undefined) {
      passed += 1;
      yield `${data.name} ... ok\n`;
    } else if (type === "test:pass" || type === "test:fail") {
      failed += 1;
      const error = data.details?.error;
      yield `${data.name} ... FAILED\n${error?.cause?.stack ?? error?.stack ?? "skipped"}\n`;
    }
  }
  yield `test result: ${failed ? "FAILED" : "ok"}. ${passed} passed; ${failed} failed;\n`;
  if (failed) process.exitCode = 1;
}
