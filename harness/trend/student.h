/* student: Student's distribution, for means of which the spread is itself an estimate. **Pure.** */
#pragma once

/* The probability of a value above t with so many degrees of freedom (above 0). */
double student_above(double t, double freedom);
/* The value that is exceeded with the probability p, 0 < p < 0.5. */
double student_quantile(double p, double freedom);
