/* SPDX-License-Identifier: MIT */
#include "profile/profile.h"
