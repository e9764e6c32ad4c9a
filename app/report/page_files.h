/* The files of page/, which cmake/embed.cmake makes C of. Each ends in a zero. */
#ifndef TSR_APP_REPORT_PAGE_FILES_H
#define TSR_APP_REPORT_PAGE_FILES_H

extern const unsigned char tsr_page_style_css[];
extern const unsigned char *const tsr_page_scripts[]; /* in the order of app/CMakeLists.txt; NULL ends them */

#endif
