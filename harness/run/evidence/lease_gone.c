/* Our own client's reading: no key of the job hangs any more on the lease that it had. */
#include "harness/run/evidence/store_read.h"

EVIDENCE_IS_READ(lease_gone, "lease", "lease-keys", before != 0 && after == 0,
                 "the lease of the job is gone, and with it all keys that hung on it",
                 "the job had no lease in the store, or keys hang on it still");
