"""The wheel of RankQuake, of an unpacked tarball: ci/package/build. The programs lie in rankquake/programs, and the commands start
them from there."""

import os

from setuptools import Distribution, setup
from wheel.bdist_wheel import bdist_wheel


class Wheel(bdist_wheel):
    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False  # it holds programs of a machine

    def get_tag(self):
        return "py3", "none", "manylinux_2_34_" + os.environ["MACHINE"]


class WithPrograms(Distribution):
    def has_ext_modules(self):
        return True


def below(folder):
    return [os.path.relpath(os.path.join(place, name), "rankquake")
            for place, _, names in sorted(os.walk(folder)) for name in sorted(names)]


COMMANDS = ("rankprobe", "rankquake", "rankrun", "ranktrain")

setup(
    name="rankquake",
    version=os.environ["VERSION"],
    description="Break your training job on purpose, before the cluster does",
    long_description=open("README.md", encoding="utf-8").read(),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.8",
    packages=["rankquake"],
    package_data={"rankquake": below("rankquake/programs")},
    entry_points={"console_scripts": ["%s = rankquake.start:%s" % (name, name) for name in COMMANDS]},
    distclass=WithPrograms,
    cmdclass={"bdist_wheel": Wheel},
)
