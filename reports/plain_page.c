#include "reports/plain_page.h"

const char plain_page_head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri "
    "'none'; form-action 'none'; style-src "
    "'unsafe-inline'; img-src data:\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<link rel=\"icon\" href=\"data:,\">\n";

const char plain_page_style[] =
    "<style>\n"
    ":root{color-scheme:light dark}\n"
    "a,b,code,dd,dt,h1,h2,h3,li,p,pre,small,td,th{unicode-bidi:isolate}\n"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}\n"
    "table{border-collapse:collapse;width:100%}\n"
    "th,td{text-align:left;padding:.4rem .8rem .4rem 0;border-bottom:1px solid #8884;"
    "vertical-align:top}\n"
    "code,pre{font-family:ui-monospace,monospace;white-space:pre-wrap}\n"
    ".good{color:#1a7f37}.bad{color:#cf222e}.doubt{color:#9a6700}.dim{opacity:.7}\n";
