#!/bin/bash
# Gradescope runs this once, when it builds the autograder's image.
set -e
apt-get update
apt-get install -y --no-install-recommends g++ python3 catch2
adduser student --no-create-home --disabled-password --gecos ""
chmod o= /autograder/source
# Compile Catch2's main now, and not for each submission.
cd /autograder/source/course
LAB_SKIP_PACKAGES=1 ./lab "$(cat /autograder/source/exercise.txt)" --solution
