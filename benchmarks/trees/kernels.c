/* The yardstick of the speed targets: the sequential kernels of diffusion trees in plain C, binary trees only.
 *
 * Dirichlet diffusion tree with a(t) = rate / (1 - t), unit diffusion variance, leaves known exactly or with one
 * variance each. Rows as in cavity.models.trees.arrays: leaves 0 .. n-1, branch points n .. 2n-2, origin 2n-1.
 * The algorithm is the one of the numba kernels, so that a ratio compares compilers and not ideas.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LANES 8
#define REFINED 4
#define ROUNDS 4
#define GAP 1e-9
#define LOG_2PI 1.8378770664093454836

typedef struct {
    int n, columns, rows;
    double rate;
    int64_t *parent, *child, *next, *count;
    double *depth, *rest, *length, *mean, *variance, *norm;
    const double *harmonic, *follow;           /* log Gamma(m) is both log_follow and log_total */
    int64_t slot;                              /* the one free slot while a subtree is detached */
    /* scratch of a survey */
    double *down, *down_variance, *branch, *passed;
    int64_t *node, *stack, *row;
} tree;

static const double fractions[LANES] = {0.03, 0.12, 0.27, 0.45, 0.63, 0.79, 0.91, 0.995};

/* fdlibm's logarithm without its branches, for positive normal numbers: vectorises. */
static inline double fast_log(double x) {
    int64_t bits;
    memcpy(&bits, &x, 8);
    int64_t k = (bits - 0x3FE6A09E667F3BCDLL) >> 52;
    bits -= (int64_t)((uint64_t)k << 52);
    double m;
    memcpy(&m, &bits, 8);
    double f = m - 1.0, s = f / (2.0 + f), z = s * s, w = z * z;
    double even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    double odd = z * (6.666666666666735130e-01 + w * (2.857142874366239149e-01 +
                 w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
    double half = 0.5 * f * f;
    return (double)k * 0.6931471805599453 + (f - (half - s * (half + even + odd)));
}

static inline double since(const tree *s, int64_t u, int64_t v) {
    return s->rest[u] * -expm1(s->depth[u] - s->depth[v]);
}

static void hang(tree *s, int64_t v, int64_t u) {
    s->parent[v] = u;
    s->next[v] = s->child[u];
    s->child[u] = v;
    s->length[v] = since(s, u, v);
}

static void unhang(tree *s, int64_t v) {
    int64_t u = s->parent[v], first = s->child[u];
    if (first == v) s->child[u] = s->next[v];
    else s->next[first] = s->next[v];
}

/* First children, siblings and lengths from parents and depths. */
static void link_rows(tree *s) {
    for (int v = 0; v < s->rows; v++) s->rest[v] = exp(-s->depth[v]), s->child[v] = s->next[v] = -1;
    for (int v = s->rows - 2; v >= 0; v--) hang(s, v, s->parent[v]);
}

tree *tree_new(int n, int columns, double rate, const int32_t *parent, const double *depth, const int32_t *count,
               const double *mean, const double *variance, const double *harmonic, const double *follow) {
    tree *s = calloc(1, sizeof *s);
    int rows = 2 * n;
    s->n = n, s->columns = columns, s->rows = rows, s->rate = rate, s->harmonic = harmonic, s->follow = follow;
    s->parent = malloc(8 * rows), s->child = malloc(8 * rows), s->next = malloc(8 * rows), s->count = malloc(8 * rows);
    s->node = malloc(8 * rows), s->stack = malloc(8 * rows), s->row = malloc(8 * rows);
    s->depth = malloc(8 * rows), s->rest = malloc(8 * rows), s->length = calloc(rows, 8), s->norm = calloc(rows, 8);
    s->variance = calloc(rows, 8), s->down_variance = calloc(rows, 8), s->passed = calloc(rows, 8);
    s->mean = calloc((size_t)rows * columns, 8), s->down = calloc((size_t)rows * columns, 8);
    s->branch = calloc((size_t)rows * 16, 8);
    memcpy(s->mean, mean, (size_t)8 * n * columns);
    memcpy(s->variance, variance, 8 * n);
    for (int v = 0; v < rows; v++) s->parent[v] = parent[v], s->depth[v] = depth[v], s->count[v] = count[v];
    link_rows(s);
    return s;
}

void tree_free(tree *s) {
    free(s->parent), free(s->child), free(s->next), free(s->count), free(s->node), free(s->stack), free(s->row);
    free(s->depth), free(s->rest), free(s->length), free(s->norm), free(s->variance), free(s->down_variance);
    free(s->passed), free(s->mean), free(s->down), free(s->branch), free(s);
}

/* m = the message of u from those of its two children. */
static double combine(int columns, const double *restrict one, double p, const double *restrict two, double q,
                      double *restrict mean, double *variance) {
    double share = p / (p + q), square = 0.0;
    for (int d = 0; d < columns; d++) {
        double apart = two[d] - one[d];
        mean[d] = one[d] + share * apart;
        square += apart * apart;
    }
    *variance = share * q;
    return -0.5 * (columns * (fast_log(p + q) + LOG_2PI) + square / (p + q));
}

static void merge(tree *s, int64_t u) {
    int64_t D = s->columns, one = s->child[u];
    double p = s->variance[one] + s->length[one];
    if (u == s->rows - 1) {
        double square = 0.0;
        for (int d = 0; d < D; d++) square += s->mean[one * D + d] * s->mean[one * D + d];
        s->norm[u] = -0.5 * (D * (fast_log(p) + LOG_2PI) + square / p);
        return;
    }
    int64_t two = s->next[one];
    s->norm[u] = combine(D, s->mean + one * D, p, s->mean + two * D, s->variance[two] + s->length[two],
                         s->mean + u * D, s->variance + u);
}

static void renew(tree *s, int64_t v) {
    for (; v >= 0; v = s->parent[v]) merge(s, v);
}

static int preorder(const tree *s, int64_t *order) {
    int64_t top = s->child[s->rows - 1], v = top;
    int n = 0;
    for (;;) {
        order[n++] = v;
        if (s->child[v] >= 0) { v = s->child[v]; continue; }
        while (v != top && s->next[v] < 0) v = s->parent[v];
        if (v == top) return n;
        v = s->next[v];
    }
}

/* Upward sweep: the log evidence. */
double sweep_up(tree *s) {
    int n = preorder(s, s->node);
    double total = 0.0;
    for (int i = n - 1; i >= 0; i--)
        if (s->node[i] >= s->n) merge(s, s->node[i]), total += s->norm[s->node[i]];
    merge(s, s->rows - 1);
    return total + s->norm[s->rows - 1];
}

static double log_prior(const tree *s) {
    double total = 0.0;
    for (int v = s->n; v < s->rows - 1; v++) {
        int64_t one = s->child[v], m = s->count[v];
        total += (s->depth[s->parent[v]] - s->depth[v]) * s->rate * s->harmonic[m - 1];
        total += s->follow[s->count[one]] + s->follow[s->count[s->next[one]]] - s->follow[m];
    }
    return total + (s->n - 1) * log(s->rate);
}

/* The downward message of v into a row; that of its parent is in the row `above`. */
static void cavity(tree *s, int64_t above, int64_t v, int64_t row) {
    int64_t u = s->parent[v], D = s->columns;
    double *restrict out = s->down + row * D;
    if (u == s->rows - 1) {
        memset(out, 0, 8 * D);
        s->down_variance[row] = 0.0;
        return;
    }
    int64_t other = s->child[u] != v ? s->child[u] : s->next[v];
    double p = s->down_variance[above] + s->length[u], q = s->variance[other] + s->length[other], share = p / (p + q);
    const double *restrict one = s->down + above * D, *restrict two = s->mean + other * D;
    for (int d = 0; d < D; d++) out[d] = one[d] + share * (two[d] - one[d]);
    s->down_variance[row] = share * q;
}

/* Both sweeps, the log joint, its derivatives in depths, and in the logs of the columns' scales. */
double value_and_gradient(tree *s, double *by_depth, double *by_scale) {
    int64_t D = s->columns;
    double joint = sweep_up(s) + log_prior(s);
    memset(by_depth, 0, 8 * s->rows), memset(by_scale, 0, 8 * D);
    for (int i = 0; i < 2 * s->n - 1; i++) {
        int64_t v = s->node[i], u = s->parent[v];
        cavity(s, u, v, v);
        const double *restrict one = s->mean + v * D, *restrict two = s->down + v * D;
        double length = s->length[v], inverse = 1.0 / (s->variance[v] + s->down_variance[v] + length);
        double weight = length * inverse * inverse, square = 0.0;
        for (int d = 0; d < D; d++) {
            double apart = (one[d] - two[d]) * (one[d] - two[d]);
            square += apart;
            by_scale[d] += weight * apart - length * inverse;
        }
        double slope = 0.5 * (square * inverse - D) * inverse;
        by_depth[v] += slope * s->rest[v];
        by_depth[u] -= slope * s->rest[u];
    }
    for (int v = s->n; v < s->rows - 1; v++) {
        int64_t one = s->child[v];
        by_depth[v] += s->rate * (s->harmonic[s->count[one] - 1] + s->harmonic[s->count[s->next[one]] - 1] -
                                  s->harmonic[s->count[v] - 1]);
    }
    by_depth[s->rows - 1] = 0.0;
    return joint;
}

/* What scoring a branch needs, as in the numba kernels. */
enum { UPPER, LOWER, SPAN, TO_NODE, TO_ROOT, BELOW, ABOVE, SUB_BELOW, SUB_ABOVE, APART, SLOPE, CONSTANT, TOP, END };

static void describe(tree *s, int64_t piece, int64_t u, int64_t v, int64_t row, double total, double taken, int i) {
    double *b = s->branch + 16 * i;
    int64_t m = s->count[piece], below = s->count[v], D = s->columns;
    s->node[i] = v;
    b[UPPER] = s->rest[u], b[TOP] = s->depth[u];
    int ends = s->depth[v] <= s->depth[piece];
    if (ends) {
        b[LOWER] = s->rest[v], b[END] = s->depth[v], b[SPAN] = s->length[v], b[TO_NODE] = 0.0;
        b[TO_ROOT] = v < s->n ? 0.0 : since(s, v, piece);
    } else {
        b[LOWER] = s->rest[piece], b[END] = s->depth[piece], b[SPAN] = since(s, u, piece), b[TO_ROOT] = 0.0;
        b[TO_NODE] = since(s, piece, v);
    }
    const double *restrict p = s->mean + piece * D, *restrict q = s->mean + v * D, *restrict r = s->down + row * D;
    double one = 0.0, two = 0.0, three = 0.0;
    for (int d = 0; d < D; d++) {
        one += (p[d] - q[d]) * (p[d] - q[d]);
        two += (p[d] - r[d]) * (p[d] - r[d]);
        three += (q[d] - r[d]) * (q[d] - r[d]);
    }
    b[BELOW] = s->variance[v], b[ABOVE] = s->down_variance[row];
    b[SUB_BELOW] = one, b[SUB_ABOVE] = two, b[APART] = three;
    double gain = s->harmonic[below + m - 1] - s->harmonic[below - 1], inside = s->harmonic[m - 1];
    if (u == s->rows - 1) taken = 0.0;
    else taken += s->follow[below + m] - s->follow[below];
    b[SLOPE] = inside - gain;
    b[CONSTANT] = taken + gain * total + s->follow[below] - s->follow[below + m] + s->follow[m] + log(s->rate);
    if (m > 1) b[CONSTANT] -= inside * s->rate * s->depth[piece];
    if (v >= s->n)
        s->passed[v] = taken + (total - s->rate * s->depth[v]) * gain - s->follow[below + m] + s->follow[below];
}

static int survey(tree *s, int64_t piece) {
    int waiting = 1, n = 0;
    s->stack[0] = s->rows - 1, s->row[0] = 0;
    while (waiting) {
        int64_t u = s->stack[--waiting], above = s->row[waiting], row = above + 1;
        double total = s->rate * s->depth[u], taken = s->passed[u];
        for (int64_t v = s->child[u]; v >= 0; v = s->next[v]) {
            cavity(s, above, v, row);
            describe(s, piece, u, v, row, total, taken, n++);
            if (v >= s->n && s->depth[v] < s->depth[piece]) s->stack[waiting] = v, s->row[waiting++] = row++;
        }
    }
    return n;
}

static void score_lanes(const tree *s, const double *b, double variance, const double *restrict x,
                        const double *restrict y, double *restrict out) {
    double slope = -s->rate * b[SLOPE], columns = s->columns;
    for (int j = 0; j < LANES; j++) {
        double p = b[ABOVE] + x[j], q = b[BELOW] + y[j] + b[TO_NODE], share = p / (p + q);
        double spread = share * q + variance + y[j] + b[TO_ROOT];
        double square = share * b[SUB_BELOW] + (1.0 - share) * b[SUB_ABOVE] - share * (1.0 - share) * b[APART];
        out[j] = b[CONSTANT] + slope * fast_log(b[LOWER] + y[j]) -
                 0.5 * (columns * (fast_log(spread) + LOG_2PI) + square / spread);
    }
}

static double score_one(const tree *s, const double *b, double variance, double depth) {
    double rest = exp(-depth), x[LANES], y[LANES], out[LANES];
    for (int j = 0; j < LANES; j++) x[j] = b[UPPER] - rest, y[j] = rest - b[LOWER];
    score_lanes(s, b, variance, x, y, out);
    return out[0];
}

static int highest(const double *out) {
    int at = 0;
    for (int j = 1; j < LANES; j++) if (out[j] > out[at]) at = j;
    return at;
}

static double refine(const tree *s, const double *b, double variance, int lane, double *depth) {
    double x[LANES], y[LANES], out[LANES], most = b[UPPER] * (1.0 - GAP), nearest = b[LOWER] * (1.0 + GAP);
    int endless = b[LOWER] <= 0.0;
    double upper = lane == 0 ? most : b[LOWER] + (1.0 - fractions[lane - 1]) * b[SPAN];
    double lower = lane < LANES - 1 ? b[LOWER] + (1.0 - fractions[lane + 1]) * b[SPAN]
                 : endless ? 1e-3 * (1.0 - fractions[lane]) * b[SPAN] : nearest;
    lower = fmax(lower, nearest), upper = fmin(upper, most);
    double rest = upper, value = -INFINITY;
    for (int k = 0; k < ROUNDS; k++) {
        double ratio = exp(log(lower / upper) / (LANES + 1)), place = upper;
        for (int j = 0; j < LANES; j++) place *= ratio, x[j] = b[UPPER] - place, y[j] = place - b[LOWER];
        score_lanes(s, b, variance, x, y, out);
        int at = highest(out);
        double chosen = b[LOWER] + y[at];
        if (out[at] > value) rest = chosen, value = out[at];
        double further = endless && at == LANES - 1 && chosen * ratio <= lower ? 1e-3 : 1.0;
        upper = fmin(chosen / ratio, most);
        lower = fmax(chosen * ratio * further, nearest);
    }
    *depth = -log(rest);
    return value;
}

static int best_place(tree *s, int64_t piece, int n, double *depth, double *value) {
    double best[REFINED], x[LANES], y[LANES], out[LANES], variance = s->variance[piece];
    int which[REFINED] = {0}, lane[REFINED] = {0}, where = -1;
    for (int k = 0; k < REFINED; k++) best[k] = -INFINITY;
    for (int i = 0; i < n; i++) {
        const double *b = s->branch + 16 * i;
        if (b[END] - b[TOP] <= 4.0 * GAP) continue;
        for (int j = 0; j < LANES; j++) x[j] = fractions[j] * b[SPAN], y[j] = (1.0 - fractions[j]) * b[SPAN];
        score_lanes(s, b, variance, x, y, out);
        int at = highest(out), k = REFINED - 1;
        if (!(out[at] > best[k])) continue;
        for (; k > 0 && out[at] > best[k - 1]; k--) best[k] = best[k - 1], which[k] = which[k - 1], lane[k] = lane[k - 1];
        best[k] = out[at], which[k] = i, lane[k] = at;
    }
    *value = -INFINITY;
    for (int k = 0; k < REFINED; k++) {
        double found, worth;
        if (best[k] == -INFINITY) continue;
        worth = refine(s, s->branch + 16 * which[k], variance, lane[k], &found);
        if (worth > *value) *value = worth, *depth = found, where = which[k];
    }
    return where;
}

static void attach(tree *s, int64_t v, int64_t where, double depth) {
    int64_t point = s->slot, above = s->parent[where];
    unhang(s, where);
    s->depth[point] = depth, s->rest[point] = exp(-depth), s->count[point] = s->count[where], s->child[point] = -1;
    hang(s, point, above), hang(s, where, point), hang(s, v, point);
    for (int64_t u = point; u >= 0; u = s->parent[u]) s->count[u] += s->count[v];
    renew(s, point);
}

/* One greedy step with the subtree below v: the gain in log joint. */
double search_step(tree *s, int64_t v) {
    int64_t u = s->parent[v], above = s->parent[u];
    double before = s->depth[u], depth, value;
    unhang(s, v);
    int64_t left = s->child[u];
    for (int64_t w = u; w >= 0; w = s->parent[w]) s->count[w] -= s->count[v];
    unhang(s, u), hang(s, left, above);
    s->slot = u;
    renew(s, above);
    int n = survey(s, v), where = best_place(s, v, n, &depth, &value), old = 0;
    while (s->node[old] != left) old++;
    double worth = score_one(s, s->branch + 16 * old, s->variance[v], before);
    if (where < 0 || value <= worth) {
        attach(s, v, left, before);
        return 0.0;
    }
    attach(s, v, s->node[where], depth);
    return value - worth;
}

/* Greedy steps with random subtrees (SplitMix64): the whole gain. */
double search(tree *s, uint64_t seed, int64_t steps) {
    double gain = 0.0;
    sweep_up(s);
    for (int64_t k = 0; k < steps; k++) {
        int64_t v;
        do {
            uint64_t z = seed += 0x9E3779B97F4A7C15ULL;
            z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
            z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
            v = (int64_t)((((z ^ (z >> 31)) >> 11) + 0.5) * 1.1102230246251565e-16 * (s->rows - 1));
        } while (s->parent[v] == s->rows - 1);
        gain += search_step(s, v);
    }
    return gain;
}

void repeat_up(tree *s, int64_t times) {
    for (int64_t k = 0; k < times; k++) sweep_up(s);
}

/* As a caller has it, from parents and depths. */
void repeat_gradient(tree *s, int64_t times, double *by_depth, double *by_scale) {
    for (int64_t k = 0; k < times; k++) link_rows(s), value_and_gradient(s, by_depth, by_scale);
}
