"""The commands of RankQuake: each becomes the program of its name, which lies in this package.

SPDX-License-Identifier: Apache-2.0
"""

import os
import sys


def program(name):
    """The path of a program of this package."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "lib", "rankquake", name)


def _become(name):
    path = program(name)
    try:
        os.execv(path, [path] + sys.argv[1:])
    except OSError as error:
        sys.exit("%s: %s: %s; pip install --force-reinstall rankquake puts it back" % (name, path, error.strerror))


def rankprobe():
    _become("rankprobe")


def rankquake():
    _become("rankquake")


def rankrun():
    _become("rankrun")


def ranktrain():
    _become("ranktrain")
