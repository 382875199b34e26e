/* page: requests that a web page makes, in the browser of somebody who can reach the store. They
 * are refused: the store has no pages of its own, so whatever page asks is somebody else's.
 *
 * - A browser says with Origin which page makes a request, with every POST.
 * - A page may have had its own name resolved to the store's address, so that it is the store's
 * page to the browser (DNS rebinding). Host has its name then, so a name must be one that nobody
 * else can have resolved: an address, a name without a dot, one below a domain that is nobody's to
 * buy, this host's own, or one that was allowed. */
#pragma once

/* Of the request's headers; NULL: it has none. allowed: names with commas between them, NULL: none.
 * Returns NULL where it is no page's, else a sentence that says what to do. */
const char *page_refuses(const char *origin, const char *host, const char *allowed);
