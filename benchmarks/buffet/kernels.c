/* The yardstick of the accelerated sampler: one pass over rows with the values of features integrated out, in plain C.
 *
 * Covariance and mean of the values are renewed by rank-one steps; sums over rows as well, so that they could be
 * computed anew at any time, which this does not do. Arrays are row-major; `stride` numbers from row to row of places.
 */
#include <math.h>
#include <stdint.h>

enum { MOST = 6, LARGEST = 128 };

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

/* Logistic and Gumbel numbers, as many as rows can need. */
void chances(int64_t rows, int64_t places, double *logistic, double *gumbel, uint64_t *state) {
    for (int64_t i = 0; i < rows * places; i++) {
        const double u = uniform(state);
        logistic[i] = log(u / (1.0 - u));
    }
    for (int64_t i = 0; i < rows * (MOST + 1); i++) gumbel[i] = -log(-log(uniform(state)));
}

static inline void plus(double *restrict target, double scale, const double *restrict source, int64_t count) {
    for (int64_t i = 0; i < count; i++) target[i] += scale * source[i];
}

static inline double squares(const double *left, int64_t count) {
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++) sum += left[i] * left[i];
    return sum;
}

static void add(const uint8_t *has, const double *z, const double *value, double sign, int64_t places, int64_t top,
                int64_t dimensions, double *gram, double *cross) {
    for (int64_t j = 0; j < top; j++)
        if (has[j]) {
            plus(gram + j * places, sign, z, top);
            plus(cross + j * dimensions, sign, value, dimensions);
        }
}

/* Returns whether there were places for all features; `active`, sums, covariance and mean are changed. */
int64_t over_rows(int64_t rows, int64_t places, int64_t dimensions, uint8_t *active, const double *full, double noise,
                  double own, const double *prior, const double *births, const double *logistic, const double *gumbel,
                  double *gram, double *cross, double *covariance, double *mean) {
    double v[LARGEST], z[LARGEST], others[LARGEST], left[LARGEST];
    int alone[LARGEST];
    int64_t top = places, fits = 1;
    while (top > 0 && gram[(top - 1) * (places + 1)] == 0.0) top--;
    for (int64_t n = 0; n < rows; n++) {
        uint8_t *has = active + n * places;
        const double *value = full + n * dimensions;
        int64_t singles = 0;
        for (int64_t k = 0; k < top; k++) {
            z[k] = has[k];
            others[k] = gram[k * (places + 1)] - z[k];
            alone[k] = has[k] && others[k] == 0.0;
            singles += alone[k];
            v[k] = 0.0;
        }
        add(has, z, value, -1.0, places, top, dimensions, gram, cross);
        for (int64_t d = 0; d < dimensions; d++) left[d] = value[d];
        for (int64_t j = 0; j < top; j++)
            if (has[j] && !alone[j]) {
                plus(v, 1.0, covariance + j * places, top);
                plus(left, -1.0, mean + j * dimensions, dimensions);
            }
        double spare = 1.0 / noise + singles / own;
        for (int64_t j = 0; j < top; j++)
            if (has[j] && !alone[j]) spare -= v[j];
        for (int64_t j = 0; j < top; j++) {
            plus(covariance + j * places, v[j] / spare, v, top);
            plus(mean + j * dimensions, -v[j] / spare, left, dimensions);
        }
        for (int64_t j = 0; singles && j < top; j++)
            if (alone[j]) {
                for (int64_t k = 0; k < top; k++) covariance[j * places + k] = covariance[k * places + j] = 0.0;
                for (int64_t d = 0; d < dimensions; d++) mean[j * dimensions + d] = 0.0;
                covariance[j * (places + 1)] = 1.0 / own;
            }
        for (int64_t k = 0; k < top; k++) v[k] = 0.0;
        for (int64_t d = 0; d < dimensions; d++) left[d] = value[d];
        for (int64_t j = 0; j < top; j++)
            if (has[j]) {
                plus(v, 1.0, covariance + j * places, top);
                plus(left, -1.0, mean + j * dimensions, dimensions);
            }
        double variance = 1.0 / noise, now = squares(left, dimensions);
        for (int64_t j = 0; j < top; j++)
            if (has[j]) variance += v[j];
        for (int64_t k = 0; k < top; k++) {
            if (others[k] == 0.0) continue;
            const double sign = has[k] ? -1.0 : 1.0, *row = mean + k * dimensions;
            double after = 0.0;
            for (int64_t d = 0; d < dimensions; d++) {
                const double lacking = left[d] - sign * row[d];
                after += lacking * lacking;
            }
            const double other = variance + 2.0 * sign * v[k] + covariance[k * (places + 1)];
            const double gain = 0.5 * (dimensions * log(variance / other) + now / variance - after / other);
            if ((logistic[n * places + k] < prior[(int64_t)others[k]] + sign * gain) != has[k]) {
                has[k] = !has[k];
                plus(v, sign, covariance + k * places, top);
                plus(left, -sign, row, dimensions);
                now = after;
                variance = other;
            }
        }
        double best = -1e300;
        int64_t number = 0;
        for (int64_t k = 0; k <= MOST; k++) {
            const double s = variance + (k - singles) / own;
            const double weight = births[k] - 0.5 * (dimensions * log(s) + now / s) + gumbel[n * (MOST + 1) + k];
            if (weight > best) {
                best = weight;
                number = k;
            }
        }
        if (singles > MOST) number = singles;
        variance += (number - singles) / own;
        for (int64_t k = 0; k < places && (k < top || number > 0); k++) {
            if (k >= top) {
                top = k + 1;
                v[k] = others[k] = 0.0;
                alone[k] = 0;
            }
            if (others[k] == 0.0) {
                has[k] = number > 0;
                v[k] += (has[k] - alone[k]) / own;
                number -= has[k];
            }
        }
        fits &= number == 0;
        for (int64_t k = 0; k < top; k++) z[k] = has[k];
        add(has, z, value, 1.0, places, top, dimensions, gram, cross);
        for (int64_t j = 0; j < top; j++) {
            plus(covariance + j * places, -v[j] / variance, v, top);
            plus(mean + j * dimensions, v[j] / variance, left, dimensions);
        }
    }
    return fits;
}
