"""The build backend: makes postern/v1, then calls setuptools.

Each step makes the stubs, because setuptools wants to find every package in each of its steps, and pip begins with the
step that asks for requirements. pip has installed `build-system.requires` by then.
"""
from setuptools import build_meta

import make_stubs


def get_requires_for_build_wheel(config_settings=None):
    make_stubs.make()
    return build_meta.get_requires_for_build_wheel(config_settings)


def get_requires_for_build_sdist(config_settings=None):
    make_stubs.make()
    return build_meta.get_requires_for_build_sdist(config_settings)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    make_stubs.make()
    return build_meta.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    make_stubs.make()
    return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory, config_settings=None):
    make_stubs.make()
    return build_meta.build_sdist(sdist_directory, config_settings)
