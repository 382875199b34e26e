#!/usr/bin/env bash
# ranktrain's networks against PyTorch's, where a Python here has it: losses, gradients, statistics of batch norm.
set -u
python_dir=$(dirname "$0")/../scenarios/jobs/ranktrain/model
spawn=$(realpath "$OUT/tests/scenarios/jobs/ranktrain/model/spawn_gradient")
for python in python3 /usr/bin/python3; do
    "$python" -c 'import torch' 2>/dev/null && break
    python=
done
if [ -z "${python-}" ]; then
    echo 'no Python here has PyTorch'
    exit 77
fi
exec "$python" "$python_dir/gradients.py" "$spawn" lenet 6 resnet18 8 resnet50 4 resnet110 2 vgg16 8
