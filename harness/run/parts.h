/* parts: the table of what a run is made of, in the order in which they are called (part.h). What
 * binds the order stands behind a line; where nothing does, its place is free. */
X(opening)   /* its lines are the first of a history */
X(directory) /* who waits for its listing is held by an entry of the timeline, if both want it */
X(timeline)  /* a fault fires before anybody else takes time */
X(limits)
X(master)
X(device_snapshots)
X(holdings)
X(idling)
X(kept)        /* opens a worker's files while the worker waits to be executed */
X(reads)       /* a tree as it was before the run wrote into it */
X(calibration) /* before there is anything that it could disturb, and when all is gone */
X(usage)       /* refuses a run before anything of it is there */
X(pause)       /* what is made from here on is taken down again when a signal comes */
X(presence)    /* a run is marked before the first process of it */
X(token)
X(counting)
X(nodes)   /* the cluster and the observer; agents start when all above have */
X(lag)     /* measured when the nodes have been switched on */
X(signals) /* workers are there already when their records come */
X(outputs) /* is read to its end while the nodes are still there */
X(probes)
X(steady)
X(hand) /* its faults are entries of the timeline */
X(stores)
X(store_keys)
X(hang)
X(ending) /* everybody has seen what ends the job, and counting knows whom to wait for */
