#include "protocol/welcome.h"

#define NUMBER(name) \
    { #name, offsetof(ad_welcome, name), 0 }
#define TEXT(name) \
    { #name, offsetof(ad_welcome, name), sizeof((ad_welcome *)0)->name }

const ad_welcome_key ad__welcome_keys[AD__WELCOME_KEYS] = {
    NUMBER(window_ops),  NUMBER(window_bytes), NUMBER(max_payload), NUMBER(max_control),
    NUMBER(max_buffers), TEXT(backend),        NUMBER(devices),     NUMBER(memory),
    TEXT(device_name),   TEXT(server),         NUMBER(pid),         NUMBER(resume),
    NUMBER(instance),    TEXT(name),           TEXT(principal),     TEXT(peers),
};
