#!/bin/sh
# SPDX-License-Identifier: MIT
# check_nvcc.sh NVCC ARCHITECTURE SOURCE INCLUDE_DIRECTORY WORK_DIRECTORY
#
# Compiles every kernel for one architecture with warnings as errors, and fails if one spills registers, uses local
# memory, or has no 128-bit access to global memory.
set -eu
nvcc=$1 architecture=$2 source=$3 include=$4 work=$5
name=$work/every_kernel_sm_$architecture

# The host's half is the same for each architecture, so one of them does.
stage=-cubin
[ "$architecture" = 90 ] && stage=-c

"$nvcc" -std=c++20 -O3 -Werror all-warnings -Xptxas -v -gencode "arch=compute_$architecture,code=sm_$architecture" \
  -I"$include" $stage "$source" -o "$name.o" --keep --keep-dir "$work/keep_sm_$architecture" 2> "$name.log" || {
  cat "$name.log"
  exit 1
}

awk '
  /Compiling entry function/ { kernels++; kernel = $0 }
  /bytes stack frame/ {
    checked++
    if ($1 != 0 || $5 != 0 || $9 != 0) { print "spills or local memory: " kernel " " $0; failed = 1 }
  }
  /Used [0-9]+ registers/ { for (i = 1; i < NF; ++i) if ($i == "Used" && $(i + 1) > most) most = $(i + 1) }
  END {
    print kernels " kernels, at most " most " registers, " (failed ? "SPILLS" : "no spills")
    if (kernels < 245 || checked != kernels) { print "expected at least 245 kernels, each with its line"; failed = 1 }
    exit failed
  }' "$name.log"

# Scalar accesses are those of ragged ends and of statistics; anything in between would be a packet moved in pieces.
# But for dropout's mask: one byte an element are 8 bytes beside a packet of bf16.
awk '
  function finish() {
    if (kernel == "") return
    kernels++
    reads_tensor = kernel !~ /pick_losses|fill_loss_gradient|finish_norm/
    writes_tensor = kernel !~ /reduce_rows_kernel|pick_losses|sum_all|absmax|finish_norm/
    if ((reads_tensor && loads == 0) || (writes_tensor && stores == 0)) { print "no 128-bit access: " kernel; failed = 1 }
    if (between > 0) { print between " packets moved in pieces: " kernel; failed = 1 }
  }
  /\.entry/ { finish(); kernel = $0; loads = stores = between = 0 }
  /ld\.global/ && /\.v4\./ { loads++ }
  /st\.global/ && /\.v4\./ { stores++ }
  /(ld|st)\.global/ && (/\.v2\./ || (/\.[bfus]64/ && kernel !~ /dropout/)) { between++ }
  END { finish(); print kernels " kernels with 128-bit accesses"; exit failed || kernels < 245 }
' "$work/keep_sm_$architecture/every_kernel.ptx"
