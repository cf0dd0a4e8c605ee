"""Runs every test of this folder and prints the sum in the form `cargo xtask` adds up.

A test that is skipped or that fails unexpectedly in its setup counts as failed: nothing is left
out silently. A run that hangs ends itself and prints where it hung.
"""

import faulthandler
import sys
import unittest
from pathlib import Path

# The whole run takes a few seconds; the longest single wait is a client's timeout of 20 s.
LIMIT_S = 240


def main() -> int:
    faulthandler.dump_traceback_later(LIMIT_S, exit=True)
    folder = Path(__file__).parent
    suite = unittest.defaultTestLoader.discover(str(folder), pattern="test_*.py")
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    # A sub-test that fails is listed by itself, so the failed tests are counted by their ids.
    bad = result.failures + result.errors + result.skipped
    failed = len({getattr(test, "test_case", test).id() for test, _ in bad})
    failed += len(result.unexpectedSuccesses)
    passed = max(result.testsRun - failed, 0)
    word = "FAILED" if failed else "ok"
    print(f"test result: {word}. {passed} passed; {failed} failed;")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
