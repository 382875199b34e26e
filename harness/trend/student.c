#include "harness/trend/student.h"

#include <float.h>
#include <math.h>

/* The logarithm of the gamma function (Lanczos, g 7, nine terms); x > 0. libm's own has a sign as a
 * global variable. */
static double log_gamma(double x) {
    static const double c[] = {
        0.99999999999980993,  676.5203681218851,     -1259.1392167224028,
        771.32342877765313,   -176.61502916214059,   12.507343278686905,
        -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
    };
    double sum = c[0], t = x + 6.5;
    for (int i = 1; i < 9; i++)
        sum += c[i] / (x - 1 + i);
    return 0.91893853320467274178 + log(sum) + (x - 0.5) * log(t) - t;
}

/* The continued fraction of the incomplete beta function (Lentz). */
static double beta_fraction(double a, double b, double x) {
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < DBL_MIN ? DBL_MIN : d);
    double h = d;
    for (int m = 1; m < 500; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / (1 + even * d);
        c = 1 + even / c;
        h *= d * c;
        d = 1 / (1 + odd * d);
        c = 1 + odd / c;
        h *= d * c;
        if (fabs(d * c - 1) < 1e-14)
            break;
    }
    return h;
}

static double incomplete_beta(double a, double b, double x) {
    if (x <= 0 || x >= 1)
        return x >= 1;
    double front =
        exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log(1 - x));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                     : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double student_above(double t, double freedom) {
    double tail = incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2;
    return t >= 0 ? tail : 1 - tail;
}

double student_quantile(double p, double freedom) {
    double low = 0, high = 1;
    while (student_above(high, freedom) > p && high < 1e12)
        high *= 2;
    for (int i = 0; i < 200; i++) {
        double middle = (low + high) / 2;
        *(student_above(middle, freedom) > p ? &low : &high) = middle;
    }
    return (low + high) / 2;
}
