# What xsf's headers need to be compiled by nvcc: tables in the memory of the device, constants of namespaces that are passed by
# reference among them; functions that are defined in a header without a mark; no recursion, whose stack has no bound.
s/^( *)(static )?(constexpr|const) (double|int|uint8_t|unsigned int|std::size_t) ([A-Za-z_0-9]+\[)/\1AD_XSF_TABLE \4 \5/
s/^( *)constexpr const double \*([A-Za-z_0-9]+\[)/\1AD_XSF_TABLE double *\2/
s/^( *)constexpr double (loggamma_|digamma_|EXPN1|OMEGA)/\1AD_XSF_TABLE double \2/
s/^(std::complex<double>|double) ([A-Za-z_0-9]+\()/XSF_HOST_DEVICE inline \1 \2/
s/w = lgam_sgn\(q, sign\);/w = ::lgamma(q);/
