"""The extension module. Everything else is in pyproject.toml."""

import os
import shutil

from setuptools import Extension, setup
from setuptools.command.sdist import sdist

try:
    from setuptools.command.bdist_wheel import bdist_wheel  # setuptools 70 and later
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

here = os.path.dirname(os.path.abspath(__file__))
# A source distribution has a copy of firn.h, the repository has it beside this directory.
headers = here if os.path.exists(os.path.join(here, "firn.h")) else os.path.join(here, "..", "c")


class Sdist(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        shutil.copy(os.path.join(headers, "firn.h"), base_dir)


class BdistWheel(bdist_wheel):
    def finalize_options(self):
        self.py_limited_api = "cp39"
        super().finalize_options()


setup(
    cmdclass={"sdist": Sdist, "bdist_wheel": BdistWheel},
    ext_modules=[
        Extension(
            "firn._page",
            ["src/firn/_page.c"],
            include_dirs=[headers],
            depends=[os.path.join(headers, "firn.h")],
            extra_compile_args=["-O2", "-std=c11", "-Wall", "-Wextra", "-Wno-cast-function-type", "-Wno-missing-field-initializers"],
            py_limited_api=True,
        )
    ],
)
