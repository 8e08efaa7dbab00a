/* The yardstick of the speed targets: all loadings of a spike and slab factor model, site after site, in plain C.
 *
 * Gram form: with R = Y X^T and S = X X^T a site needs O(factors), and no samples. Given the activities of factors rows
 * are independent. Arrays are row-major, rows first.
 */
#include <math.h>
#include <stdint.h>

static inline uint64_t rotated(uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }

/* xoshiro256+ of Blackman and Vigna */
static inline double uniform(uint64_t *s) {
    const uint64_t drawn = s[0] + s[3], t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotated(s[3], 45);
    return ((drawn >> 11) + 0.5) * 0x1p-53;
}

/* Marsaglia's polar method: two at a time */
static inline double normal(uint64_t *s, double *spare, int *has) {
    if (*has) {
        *has = 0;
        return *spare;
    }
    double u, v, square;
    do {
        u = 2.0 * uniform(s) - 1.0;
        v = 2.0 * uniform(s) - 1.0;
        square = u * u + v * v;
    } while (square >= 1.0);
    const double scale = sqrt(-2.0 * log(square) / square);
    *spare = v * scale;
    *has = 1;
    return u * scale;
}

void sites(int64_t rows, int64_t factors, double *loading, const double *cross, const double *gram,
           const double *noise, const double *precision, const double *log_odds, uint64_t *seed) {
    uint64_t s[4] = {seed[0], seed[1], seed[2], seed[3]};
    double spare = 0.0;
    int has = 0;
    for (int64_t d = 0; d < rows; d++) {
        double *g = loading + d * factors;
        const double *r = cross + d * factors, psi = noise[d];
        for (int64_t k = 0; k < factors; k++) {
            const double *row = gram + k * factors;
            double rest = r[k] + g[k] * row[k];
            for (int64_t j = 0; j < factors; j++) rest -= g[j] * row[j];
            const double p = psi * row[k] + precision[k], h = psi * rest;
            const double u = uniform(s);
            const double gain = log_odds[k] + 0.5 * h * h / p + log(sqrt(precision[k] / p) * (1.0 - u) / u);
            g[k] = gain > 0.0 ? (h + sqrt(p) * normal(s, &spare, &has)) / p : 0.0;
        }
    }
    for (int i = 0; i < 4; i++) seed[i] = s[i];
}
