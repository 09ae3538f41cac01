// SPDX-License-Identifier: Apache-2.0
//
// Internal to viz: the page as it is built from viz/page/, with marks where its title and data
// belong.
#ifndef PREPOST_VIZ_PAGE_DATA_PAGE_HTML_H_
#define PREPOST_VIZ_PAGE_DATA_PAGE_HTML_H_

#include <string_view>

namespace prepost::viz {

/// With @PREPOST_TITLE@ and @PREPOST_DATA@ once each.
std::string_view PageHtml();

}  // namespace prepost::viz

#endif  // PREPOST_VIZ_PAGE_DATA_PAGE_HTML_H_
