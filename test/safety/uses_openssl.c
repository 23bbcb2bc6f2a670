/* Has OpenSSL compute digests for some milliseconds (an argument), and ends before anything was sent. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
    void *library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
    if (!library) return 77;
    int (*begin)(unsigned long long, const void *) =
        (int (*)(unsigned long long, const void *))dlsym(library, "OPENSSL_init_crypto");
    unsigned char *(*sha256)(const void *, size_t, unsigned char *) =
        (unsigned char *(*)(const void *, size_t, unsigned char *))dlsym(library, "SHA256");
    static unsigned char data[65536], digest[32];
    if (!begin || !sha256 || begin(12, NULL) != 1) return 1; /* all ciphers and digests */
    long milliseconds = argc > 1 ? atol(argv[1]) : 200;
    struct timespec first, now;
    clock_gettime(CLOCK_MONOTONIC, &first);
    do {
        sha256(data, sizeof(data), digest);
        data[0] = digest[0];
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - first.tv_sec) * 1000 + (now.tv_nsec - first.tv_nsec) / 1000000 < milliseconds);
    puts("finished");
    return 0;
}
