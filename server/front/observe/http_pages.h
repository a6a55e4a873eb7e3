/* The files of the page for people, embedded in the program. */
#ifndef AD_SERVER_FRONT_OBSERVE_HTTP_PAGES_H
#define AD_SERVER_FRONT_OBSERVE_HTTP_PAGES_H

extern const char ad_page_html[], ad_page_html_end[];
extern const char ad_page_js[], ad_page_js_end[];
extern const char ad_page_css[], ad_page_css_end[];

#endif
