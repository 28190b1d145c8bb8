"""The build backend: makes postern/v1, then calls setuptools."""
from setuptools import build_meta
from setuptools.build_meta import (  # noqa: F401
    get_requires_for_build_sdist, get_requires_for_build_wheel, prepare_metadata_for_build_wheel,
)

import make_stubs


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    make_stubs.make()
    return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory, config_settings=None):
    make_stubs.make()
    return build_meta.build_sdist(sdist_directory, config_settings)
