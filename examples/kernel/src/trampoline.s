# What a CPU runs first: an AP after its start-up IPI, and the boot CPU after S3 (the firmware's waking vector). Copied to 0x8000.
# In both cases: real mode, CS = 0x800, IP = 0.

.equ BASE, 0x8000

.section .rodata.trampoline, "a"
.globl trampoline_start, trampoline_end, trampoline_cr0_and, trampoline_cr0_or
.code16
trampoline_start:
    cli
    cld
    movw %cs, %ax
    movw %ax, %ds
    movl $0x1b, %ecx                # IA32_APIC_BASE bit 8: this is the bootstrap processor
    rdmsr
    movl %eax, %ebx
    movl %cr0, %eax
    testw $0x100, %bx
    jnz 1f                          # after S3 the firmware has its caches on; they stay so

    # An AP comes out of INIT with CD and NW both set. The kernel decides here what to make of them (`trampoline=`): no-fill mode,
    # CD=1 NW=0, in which nothing can enter the cache under a wrong type before the MTRRs are right, or leave them alone.
    andl trampoline_cr0_and - trampoline_start, %eax
    orl trampoline_cr0_or - trampoline_start, %eax
1:  orl $1, %eax
    lgdtl trampoline_gdtr - trampoline_start
    movl %eax, %cr0
    ljmpl $0x08, $(trampoline_32 - trampoline_start + BASE)

.code32
trampoline_32:
    movw $0x10, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    movl $0x6a0, %eax               # CR4: PAE, PGE, OSFXSR, OSXMMEXCPT
    movl %eax, %cr4
    movl $boot_pml4, %eax
    movl %eax, %cr3
    movl $0xc0000080, %ecx          # EFER.LME
    rdmsr
    orl $0x100, %eax
    wrmsr
    movl %cr0, %eax
    andl $~0xc, %eax                # EM and TS off; CD and NW untouched
    orl $0x80010002, %eax           # PG, WP, MP
    movl %eax, %cr0
    ljmpl $0x18, $(trampoline_64 - trampoline_start + BASE)

.code64
trampoline_64:
    movabsq $cpu_entry64, %rax
    jmpq *%rax

.balign 8
trampoline_cr0_and: .long 0xffffffff
trampoline_cr0_or:  .long 0
.balign 8
trampoline_gdt:
    .quad 0, 0x00cf9b000000ffff, 0x00cf93000000ffff, 0x00af9b000000ffff, 0x00cf93000000ffff
trampoline_gdtr:
    .short trampoline_gdtr - trampoline_gdt - 1
    .long trampoline_gdt - trampoline_start + BASE
trampoline_end:

.section .text.cpu_entry, "ax"
cpu_entry64:
    movl $0x20, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    xorl %eax, %eax
    movl %eax, %fs
    movl %eax, %gs
    movl $0x1b, %ecx
    rdmsr
    testl $0x100, %eax
    jnz s3_woken

    # An AP finds its own number, by its APIC id. It is not handed over in a variable: an AP that answers late, after the boot CPU
    # gave up on it and went on to the next one, would take the next one's stack.
    xorl %eax, %eax
    cpuid
    cmpl $0xb, %eax
    jb 1f
    movl $0xb, %eax
    xorl %ecx, %ecx
    cpuid
    testl %ebx, %ebx
    jnz 2f
1:  movl $1, %eax
    cpuid
    shrl $24, %ebx
    movl %ebx, %edx
2:  movq $APIC_IDS, %rax
    xorl %edi, %edi
    movl CPU_COUNT(%rip), %ecx
3:  cmpl %ecx, %edi
    jae 4f
    cmpl (%rax, %rdi, 4), %edx
    je 5f
    incl %edi
    jmp 3b
4:  cli                             # a CPU nobody listed
    hlt
    jmp 4b
5:  movq stack_bytes(%rip), %rax
    movq %rdi, %rcx
    incq %rcx
    imulq %rcx, %rax
    movq $STACKS, %rsp
    addq %rax, %rsp
    xorl %ebp, %ebp
    call ap_main
    ud2

# extern "C" fn s3_sleep(enter: extern "C" fn()) -> u64: 1 after the wake, 0 if `enter` came back, so nobody slept.
.globl s3_sleep
s3_sleep:
    pushq %rbx
    pushq %rbp
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    subq $8, %rsp
    movq %rsp, s3_stack(%rip)
    callq *%rdi
    xorl %eax, %eax
    jmp 1f
s3_woken:
    movq s3_stack(%rip), %rsp
    movl $1, %eax
1:  addq $8, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbp
    popq %rbx
    retq

.section .bss.s3_stack, "aw", @nobits
.balign 8
s3_stack: .skip 8
