/* Every call that answers before boot_init, without privilege. Prints what is wrong; the exit code says whether something is. */
#define _GNU_SOURCE
#include "mtrr_pat.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

static int wrong;

static void expect(int right, const char *what)
{
    if (!right) {
        wrong = 1;
        printf("wrong: %s\n", what);
    }
}

/* Refused with this code, which `info` has as well, with a text. */
static void refused(mtrr_pat_code got, uint32_t want, const struct mtrr_pat_info *info, const char *what)
{
    expect(got == want && info->code == want, what);
    expect(info->done == 0 && info->text[0] != 0, what);
    expect(memchr(info->text, 0, sizeof info->text) != NULL, what);
}

static void count_line(const char *line, void *count)
{
    expect(strchr(line, '\n') == NULL && strlen(line) > 0, "a line");
    ++*(int *)count;
}

static int caught;
static sigjmp_buf given_up;

/* Without privilege every RDMSR raises #GP, which comes as this signal: what a kernel's handler of vector 13 does. */
static void general_protection(int signal, siginfo_t *what, void *context)
{
    greg_t *rip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    uint64_t landing = mtrr_pat_fixup((uint64_t)*rip);
    (void)signal, (void)what;
    if (landing == 0)
        siglongjmp(given_up, 1);
    caught++;
    *rip = (greg_t)landing;
}

/* boot_init, as far as it comes. */
static void faults(void)
{
    struct sigaction action = {.sa_sigaction = general_protection, .sa_flags = SA_SIGINFO | SA_NODEFER};
    struct mtrr_pat_info info;
    sigaction(SIGSEGV, &action, NULL);
    if (sigsetjmp(given_up, 1) == 0)
        printf("%s: %s\n", mtrr_pat_name(mtrr_pat_boot_init(0, NULL, 0, &info)), info.text);
    else
        printf("a fault that is not an MSR's, after %d that were\n", caught);
    expect(caught > 0, "an access to an MSR was caught");
}

int main(void)
{
    struct mtrr_pat_info info;
    struct mtrr_pat_registers registers;
    uint64_t bits = 1;
    uint32_t type = 99, code;
    int lines = 0;

    memset(&info, 0xff, sizeof info);
    memset(&registers, 0, sizeof registers);
    refused(mtrr_pat_attend(0, &info), MTRR_PAT_NOT_INITIALISED, &info, "attend");
    refused(mtrr_pat_hold_point(0, &info), MTRR_PAT_NOT_INITIALISED, &info, "hold_point");
    refused(mtrr_pat_resync(0, NULL, NULL, &info), MTRR_PAT_NOT_INITIALISED, &info, "resync");
    refused(mtrr_pat_check(0, NULL, NULL, &info), MTRR_PAT_NOT_INITIALISED, &info, "check");
    refused(mtrr_pat_starting(1, 1, &info), MTRR_PAT_NOT_INITIALISED, &info, "starting");
    refused(mtrr_pat_ap_online(1, NULL, NULL, &info), MTRR_PAT_NOT_INITIALISED, &info, "ap_online");
    refused(mtrr_pat_offline(1, &info), MTRR_PAT_NOT_INITIALISED, &info, "offline");
    refused(mtrr_pat_parked(1, &info), MTRR_PAT_NOT_INITIALISED, &info, "parked");
    refused(mtrr_pat_suspend(0, &info), MTRR_PAT_NOT_INITIALISED, &info, "suspend");
    refused(mtrr_pat_suspend_aborted(&info), MTRR_PAT_NOT_SUSPENDED, &info, "suspend_aborted");
    refused(mtrr_pat_boot_resume(0, &info), MTRR_PAT_NOT_INITIALISED, &info, "boot_resume");
    refused(mtrr_pat_target(&registers, &info), MTRR_PAT_NOT_INITIALISED, &info, "target");
    refused(mtrr_pat_change(0, NULL, NULL, NULL, &info), MTRR_PAT_BAD_ARGUMENT, &info, "change to nothing");
    refused(mtrr_pat_change(0, &registers, NULL, NULL, &info), MTRR_PAT_NOT_INITIALISED, &info, "change");
    refused(mtrr_pat_set_range(0, 0, 4096, 2, 0, NULL, NULL, &info), MTRR_PAT_BAD_ARGUMENT, &info, "type 2");
    refused(mtrr_pat_set_range(0, 0, 4096, MTRR_PAT_UC_MINUS, 0, NULL, NULL, &info), MTRR_PAT_BAD_ARGUMENT, &info, "UC-");
    refused(mtrr_pat_set_range(0, 0, 4096, 0x101, 0, NULL, NULL, &info), MTRR_PAT_BAD_ARGUMENT, &info, "type 257");
    refused(mtrr_pat_set_range(0, 0, 4096, MTRR_PAT_WC, 0, NULL, NULL, &info), MTRR_PAT_NOT_INITIALISED, &info, "range");
    expect(mtrr_pat_attend(0, NULL) == MTRR_PAT_NOT_INITIALISED, "without info");
    expect(mtrr_pat_page_bits(MTRR_PAT_WC, false, &bits, &type) == MTRR_PAT_NOT_INITIALISED, "page_bits");
    expect(mtrr_pat_page_bits(3, false, NULL, NULL) == MTRR_PAT_BAD_ARGUMENT, "page_bits of type 3");
    expect(mtrr_pat_effective(0, 0, false, &type, NULL) == MTRR_PAT_NOT_INITIALISED, "effective");
    expect(bits == 1 && type == 99, "nothing was written");
    expect(mtrr_pat_state(0) == MTRR_PAT_ABSENT, "state");
    expect(mtrr_pat_state(MTRR_PAT_CPUS) == MTRR_PAT_NO_SUCH_CPU, "state of no CPU");
    expect(mtrr_pat_fixup(0) == 0 && mtrr_pat_fixup((uint64_t)(uintptr_t)main) == 0, "another's fault");
    mtrr_pat_log_to(count_line, &lines, true);
    mtrr_pat_log_to(NULL, NULL, false);
    mtrr_pat_report(count_line, &lines);
    expect(lines == 1, "a report of nothing is one line");
    mtrr_pat_report(NULL, NULL);

    expect(!strcmp(mtrr_pat_name(MTRR_PAT_MISSING), "MTRR_PAT_MISSING"), "a name");
    for (code = 0; strcmp(mtrr_pat_name(code), "?"); code++)
        expect(!strncmp(mtrr_pat_name(code), "MTRR_PAT_", 9) && strlen(mtrr_pat_text(code)) > 5, mtrr_pat_name(code));
    expect(strlen(mtrr_pat_text(0xffffffff)) > 0, "no code");
    faults();
    printf("%u codes\n", code);
    return wrong;
}
