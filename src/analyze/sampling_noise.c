/* SPDX-License-Identifier: MIT */
#include "analyze/sampling_noise.h"

#include <math.h>
#include <stdlib.h>

/* From so many samples on, the normal distribution is as good, and the fraction below takes too many steps. */
#define SAMPLES_EXACT_MAX 1e8

/* The continued fraction of the incomplete beta function, by the method of Lentz (Abramowitz and Stegun, 26.5.8). */
static double beta_fraction(double a, double b, double x)
{
    enum { STEPS_MAX = 200000 };
    const double tiny = 1e-300, precision = 1e-14;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double fraction = d;
    for (int m = 1; m < STEPS_MAX; m++) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        double change = 1;
        const double terms[] = {even, odd};
        for (int i = 0; i < 2; i++) {
            d = 1 + terms[i] * d;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = 1 + terms[i] / c;
            if (fabs(c) < tiny) c = tiny;
            change = d * c;
            fraction *= change;
        }
        if (fabs(change - 1) < precision) break;
    }
    return fraction;
}

/* The logarithm of the gamma function without the variable signgam, which lgamma writes. */
static double log_gamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

/* I_x(a, b), the regularized incomplete beta function. */
static double incomplete_beta(double a, double b, double x)
{
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    double front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* The probability of COUNT or more of ALL, which are each among them with the probability SHARE. */
static double upper_tail(double count, double all, double share)
{
    return count <= 0 ? 1 : incomplete_beta(count, all - count + 1, share);
}

static double normal_probability(struct sample_counts counts, double share)
{
    double all = (double)counts.base + (double)counts.new;
    double distance = fabs((double)counts.new - all *share) / sqrt(all * share * (1 - share));
    return erfc(distance / sqrt(2));
}

double noise_probability(struct sample_counts counts, double share)
{
    double base = (double)counts.base, new = (double)counts.new, all = base + new;
    if (all == 0 || !(share > 0 && share < 1)) return 1;
    if (all > SAMPLES_EXACT_MAX) return normal_probability(counts, share);
    double more = upper_tail(new, all, share), fewer = upper_tail(base, all, 1 - share);
    return fmin(1, 2 * fmin(more, fewer));
}

/* The smallest probability that so many samples can have: all of them are in one recording. */
static double least_probability(struct sample_counts counts, double share)
{
    double all = (double)counts.base + (double)counts.new;
    return fmin(1, 2 * pow(fmin(share, 1 - share), all));
}

static int compare(const void *left, const void *right)
{
    const double *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

double noise_limit(const struct sample_counts *counts, size_t count, double share, double level)
{
    double *least = malloc((count + 1) * sizeof(*least));
    if (!least || count == 0) {
        free(least);
        return level / (double)(count ? count : 1);
    }
    for (size_t i = 0; i < count; i++) least[i] = least_probability(counts[i], share);
    qsort(least, count, sizeof(*least), compare);
    size_t k = 0, able = count; /* ABLE falls while K grows */
    do {
        k++;
        while (able > 0 && least[able - 1] > level / (double)k) able--;
    } while (able > k);
    free(least);
    return level / (double)k;
}
