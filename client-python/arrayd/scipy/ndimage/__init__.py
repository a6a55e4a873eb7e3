"""Filters, interpolation, measurements and morphology of images of any number of dimensions: scipy.ndimage's functions.

mode says what stands beyond the edges of an array `a b c d`:

    "reflect", "grid-mirror"    d c b a | a b c d | d c b a
    "constant"                  k k k k | a b c d | k k k k
    "nearest"                   a a a a | a b c d | d d d d
    "mirror"                      d c b | a b c d | c b a
    "wrap"                      a b c d | a b c d | a b c d
"""
from ._distance import distance_transform_edt
from ._fourier import fourier_ellipsoid, fourier_gaussian, fourier_shift, fourier_uniform
from ._generic import generic_filter, generic_filter1d
from ._interpolation import affine_transform, map_coordinates, rotate, shift, spline_filter, spline_filter1d, zoom
from ._linear import (convolve, convolve1d, correlate, correlate1d, gaussian_filter, gaussian_filter1d,
                      gaussian_gradient_magnitude, gaussian_laplace, generic_gradient_magnitude, generic_laplace, laplace,
                      prewitt, sobel, uniform_filter, uniform_filter1d)
from ._measurements import (center_of_mass, extrema, find_objects, histogram, label, labeled_comprehension, maximum,
                            maximum_position, mean, median, minimum, minimum_position, standard_deviation, sum, sum_labels,
                            value_indices, variance)
from ._morphology import (binary_closing, binary_dilation, binary_erosion, binary_fill_holes, binary_hit_or_miss,
                          binary_opening, binary_propagation, black_tophat, generate_binary_structure, grey_closing,
                          grey_dilation, grey_erosion, grey_opening, iterate_structure, morphological_gradient,
                          morphological_laplace, white_tophat)
from ._ranks import (maximum_filter, maximum_filter1d, median_filter, minimum_filter, minimum_filter1d,
                     percentile_filter, rank_filter)

__all__ = sorted(name for name in globals() if not name.startswith("_"))
