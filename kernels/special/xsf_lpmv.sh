#!/bin/sh
# Of xsf's specfun.h, which nvcc cannot read as a whole, what Legendre functions need: xsf_lpmv.sh SPECFUN_H >LPMV_H
set -eu
echo '#pragma once'
echo 'namespace xsf {'
echo 'namespace specfun {'
for name in gamma2 psi_spec lpmv0 lpmv; do
    sed -n "/^    inline double $name(/,/^    }/p" "$1"
done
echo '} // namespace specfun'
echo '} // namespace xsf'
