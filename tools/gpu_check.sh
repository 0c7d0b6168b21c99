#!/usr/bin/env bash
# What can only be done on a machine with an NVIDIA GPU, in one run of some minutes.
set -eu
cd "$(dirname "$0")/.."

usage() {
  cat << 'TEXT'
usage: tools/gpu_check.sh [--out FILE] [PART ...]

Builds decodelab for this machine's GPU and checks what only a GPU can show. Parts, all by
default and each also alone:
  conformance  every intrinsic that the emulator imitates, on the GPU and emulated, compared
  parity       every operation, GPU against CPU; whole models, GPU against CPU
  sanitizer    compute-sanitizer (memcheck, racecheck, synccheck) on a few operations, where it
               is installed
  ladders      every kernel ladder, timed against cuBLAS and this GPU's own peaks
  chapters     chapters 01 and 02 with --device cuda
  bench        decodelab bench --device cuda
  exercises    our solutions of the CUDA exercises, on the GPU
The record is one JSON file: docs/measurements/gpu_NAME.json, or FILE. Logs are in build/gpu_check.
Exit: 0 all parts passed, 1 one failed, 2 wrong usage, 77 no GPU or no nvcc here.
TEXT
}

parts=() out=""
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --out) out=${2:?--out needs a file}; shift ;;
    conformance | parity | sanitizer | ladders | chapters | bench | exercises) parts+=("$1") ;;
    *) echo "gpu_check.sh: unknown part '$1'; --help lists them" >&2; exit 2 ;;
  esac
  shift
done
[ ${#parts[@]} -gt 0 ] ||
  parts=(conformance parity sanitizer ladders chapters bench exercises)

command -v nvcc > /dev/null || { echo "gpu_check.sh: no nvcc here; install the CUDA toolkit" >&2; exit 77; }
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2> /dev/null | head -1) || gpu=""
[ -n "$gpu" ] || { echo "gpu_check.sh: no NVIDIA GPU here" >&2; exit 77; }

build=build/cuda logs=build/gpu_check
rm -rf "$logs" && mkdir -p "$logs"
echo "== build for $gpu"
cmake --preset cuda > "$logs/build.log"
cmake --build $build --target \
  conformance_cuda parity_cuda test_device_models ladders decodelab \
  chapter_01_naive_decode chapter_02_kv_cache chapter_03_batching >> "$logs/build.log" ||
  { tail -30 "$logs/build.log"; exit 1; }

# part NAME COMMAND...: runs it, keeps what it printed, notes how it ended and how long it took.
failed=0
part() {
  local name=$1 start=$SECONDS rc=0
  shift
  "$@" > "$logs/$name.log" 2>&1 || rc=$?
  echo "$name $rc $((SECONDS - start))" >> "$logs/parts.txt"
  echo "== $name: $([ $rc -eq 0 ] && echo passed || echo "exit $rc") in $((SECONDS - start)) s"
  if [ $rc -ne 0 ]; then
    failed=1
    tail -15 "$logs/$name.log"
  fi
}

sanitizer() {
  command -v compute-sanitizer > /dev/null || { echo "compute-sanitizer is not installed: skipped"; return 0; }
  local tool
  for tool in memcheck racecheck synccheck; do
    compute-sanitizer --tool $tool --error-exitcode 1 $build/tests/golden/test_device_models \
      "a batch of several sequences*"  # a small model: every kernel once
  done
}
chapter() { $build/chapters/$1/$1 --device cuda --json "$logs/$1.json"; }

for name in "${parts[@]}"; do
  case $name in
    conformance) part conformance $build/tests/simt/conformance_cuda tests/simt/conformance.txt ;;
    parity)
      part parity $build/tests/parity/parity_cuda
      part models $build/tests/golden/test_device_models
      ;;
    sanitizer) part sanitizer sanitizer ;;
    ladders) part ladders $build/kernels/ladders/ladders --device cuda --json "$logs/ladders.json" ;;
    chapters) for name in 01_naive_decode 02_kv_cache 03_batching; do part $name chapter $name; done ;;
    bench) part bench $build/tools/decodelab/decodelab bench --device cuda --threads 1 --json ;;
    exercises)
      for number in 01 02; do
        part exercise_$number ./lab $number-cuda --device cuda --solution
      done
      ;;
  esac
done

python3 tools/kernels/gpu_record.py "$logs" "$gpu" ${out:+--out "$out"}
exit $failed
