"""A program with limits ends, and so does all that it started."""
import os
import pathlib
import sys
import tempfile
import time
import unittest
from unittest import mock

import support  # noqa: F401

from exercises import sandbox

SLEEPER = "import os, time\nif os.fork() == 0:\n os.setsid()\n" \
          " if os.fork() == 0:\n  time.sleep(120)\n os._exit(0)\n"


def python(code, seconds=20.0, user=None, **limits):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        mark = f"import sys; sys.argv.append('{folder}')\n"
        ended = sandbox.run(["/usr/bin/env", "python3", "-c", mark + code], folder,
                            sandbox.Limits(seconds=seconds, **limits), user)
        return ended, survivors(folder)


def survivors(word):
    """Processes whose command line holds a word."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                if word.encode() in (entry / "cmdline").read_bytes():
                    found.append(entry.name)
            except OSError:
                pass
    return found


@unittest.skipUnless(sys.platform == "linux", "/proc and its processes are Linux's")
class Sandbox(unittest.TestCase):
    def test_code_and_output(self):
        ended, _ = python("print('hello'); raise SystemExit(3)")
        self.assertEqual((ended.code, ended.output, ended.timed_out), (3, "hello\n", False))

    def test_signal(self):
        ended, _ = python("import os; os.kill(os.getpid(), 6)")
        self.assertEqual(ended.code, 134)

    def test_time_out(self):
        started = time.monotonic()
        ended, left = python("while True: pass", seconds=1)
        self.assertTrue(ended.timed_out)
        self.assertLess(time.monotonic() - started, 30)
        self.assertEqual(left, [])

    def test_what_left_its_session_is_ended(self):
        ended, left = python(SLEEPER)
        self.assertEqual((ended.code, left), (0, []))
        ended, left = python(SLEEPER + "while True: time.sleep(1)", seconds=3)
        self.assertEqual((ended.timed_out, left), (True, []))

    def test_the_same_without_namespaces(self):
        with mock.patch.object(sandbox, "isolation", lambda: ((), "")):
            ended, left = python(SLEEPER)
            self.assertEqual((ended.code, left), (0, []))
            ended, left = python(SLEEPER + "while True: time.sleep(1)", seconds=3)
            self.assertEqual((ended.timed_out, left), (True, []))

    def test_output_is_cut(self):
        ended, _ = python("while True: print('x' * 1000)", seconds=2, output=5000)
        self.assertEqual((len(ended.output), ended.truncated), (5000, True))

    def test_file_size(self):
        ended, _ = python("open('f', 'wb').write(b'x' * (1 << 20))", file_size=1 << 16)
        self.assertNotEqual(ended.code, 0)

    def test_memory(self):
        ended, _ = python("x = bytearray(1 << 31)", memory=1 << 29)
        self.assertIn("MemoryError", ended.output)

    @unittest.skipUnless(sandbox.isolation()[1].endswith("network"), "no namespaces here")
    def test_no_network(self):
        ended, _ = python("import socket\nprint([n for _, n in socket.if_nameindex()])")
        self.assertEqual(ended.output, "['lo']\n")

    @unittest.skipUnless(sandbox.default_user(), "only root can be another user")
    def test_another_user_with_few_processes(self):
        ended, left = python("import os\nprint(os.getuid())\nn = 0\ntry:\n while n < 300:\n"
                             "  if os.fork() == 0: __import__('time').sleep(60)\n  n += 1\n"
                             "except OSError: print('stopped')", user=sandbox.default_user())
        self.assertIn("stopped", ended.output)
        self.assertNotIn("0\n", ended.output.splitlines(True)[:1])
        self.assertEqual(left, [])


if __name__ == "__main__":
    unittest.main()
