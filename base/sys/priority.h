/* priority: a process whose beats others wait for should not queue behind the training it looks
 * after.
 *
 * An agent that is served too late fences itself, a store or a wire that is makes others do so: a
 * false alarm costs a big job minutes. So these few small processes ask for a better place, as far
 * as the kernel grants it (root, or CAP_SYS_NICE); what they spawn gets the ordinary one back. */
#pragma once

void priority_raise(void);   /* best effort; says nothing when refused */
void priority_restore(void); /* in a child, before exec; async-signal-safe */
