"""The package is built from a checkout that has no stubs yet."""
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
PROTO = PACKAGE.parent.parent / "proto"


@unittest.skipUnless(importlib.util.find_spec("setuptools"), "setuptools is missing")
@unittest.skipUnless(PROTO.is_dir(), "not in a checkout")
class BuildTests(unittest.TestCase):
    def test_each_first_step_of_a_build_makes_the_stubs(self):
        for step in ("get_requires_for_build_wheel()", "get_requires_for_build_sdist()",
                     "prepare_metadata_for_build_wheel('.')"):
            with self.subTest(step), tempfile.TemporaryDirectory() as checkout:
                package = Path(checkout) / "tools" / "python"
                shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("v1", "build", "*.egg-info"))
                (Path(checkout) / "proto").symlink_to(PROTO)
                done = subprocess.run(
                    [sys.executable, "-c", f"import build_stubs; build_stubs.{step}"], cwd=package,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                self.assertEqual(done.returncode, 0, done.stdout)
                self.assertTrue((package / "postern" / "v1" / "users_pb2.py").exists())
                self.assertIn("protobuf>=", (package / "requirements.txt").read_text())
                has_plugin = importlib.util.find_spec("grpc_tools") is not None
                self.assertEqual((package / "postern" / "v1" / "users_pb2_grpc.py").exists(), has_plugin)


if __name__ == "__main__":
    unittest.main()
