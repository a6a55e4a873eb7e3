#include "server/front/observe/http_pages.h"

/* Embed a file as ad_page_NAME. The assembler reads it, so that the Makefile names it as a dependency. */
#define EMBED(name, path)                                                                               \
    __asm__(".section .rodata\n.global ad_page_" name "\n.hidden ad_page_" name "\nad_page_" name ":\n" \
            ".incbin \"" path "\"\n.global ad_page_" name "_end\n.hidden ad_page_" name "_end\n"        \
            "ad_page_" name "_end: .byte 0\n.previous\n")

EMBED("html", "server/front/observe/page/page.html");
EMBED("js", "server/front/observe/page/page.js");
EMBED("css", "server/front/observe/page/page.css");
