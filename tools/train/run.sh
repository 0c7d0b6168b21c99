#!/bin/sh
# Trains the built-in models from nothing, and exports, measures and records them. Needs python3 with venv.
#
#     tools/train/run.sh [folder for the environment and the checkpoints]
#
# A run that was stopped goes on from its last checkpoint when the same folder is given again.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
models=$here/../../models
work=${1:-${TMPDIR:-/tmp}/decodelab-train}
mkdir -p "$work"

if [ ! -x "$work/env/bin/python" ]; then
    python3 -m venv "$work/env"
fi
"$work/env/bin/pip" install --quiet -r "$here/requirements.txt"
python=$work/env/bin/python

"$python" "$here/train.py" target --out "$work" --steps "${TARGET_STEPS:-3200}"
"$python" "$here/train.py" draft --out "$work" --steps "${DRAFT_STEPS:-2500}"
"$python" "$here/export.py" --out "$work" --models "$models"
"$python" "$here/golden.py" --models "$models"
"$python" "$here/evaluate.py" --models "$models"
