target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@dynamic_shared = external addrspace(3) global [0 x i8], align 16

define ptx_kernel void @group_sum(ptr addrspace(1) noalias readonly align 4 %A, ptr addrspace(1) noalias writeonly align 4 %S, i64 %groups, i64 %threads, i64 %T.begin) #0 {
entry:
  %sum = alloca [1 x float], align 16
  %g.id = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x(), !range !{i32 0, i32 2147483647}
  %g = zext i32 %g.id to i64
  %t.id = call i32 @llvm.nvvm.read.ptx.sreg.tid.x(), !range !{i32 0, i32 1024}
  %t = zext i32 %t.id to i64
  %T = getelementptr i8, ptr addrspace(3) @dynamic_shared, i64 %T.begin
  %.1 = mul i64 %g, %threads
  %.2 = add i64 %.1, %t
  %.3.at = getelementptr float, ptr addrspace(1) %A, i64 %.2
  %.3 = load float, ptr addrspace(1) %.3.at, align 4
  %.4.at = getelementptr float, ptr addrspace(3) %T, i64 %t
  store float %.3, ptr addrspace(3) %.4.at, align 4
  call void @llvm.nvvm.barrier0()
  %.5 = icmp eq i64 %t, 0
  br i1 %.5, label %if.6.then, label %if.6.end
if.6.then:
  %.7.at = getelementptr float, ptr %sum, i64 0
  store float 0x0000000000000000, ptr %.7.at, align 4
  br label %for.8.entry
for.8.entry:
  br label %for.8.head
for.8.head:
  %i = phi i64 [ 0, %for.8.entry ], [ %i.next, %for.8.latch ]
  %i.more = icmp slt i64 %i, %threads
  br i1 %i.more, label %for.8.body, label %for.8.end
for.8.body:
  %.9.at = getelementptr float, ptr %sum, i64 0
  %.9 = load float, ptr %.9.at, align 4
  %.10.at = getelementptr float, ptr addrspace(3) %T, i64 %i
  %.10 = load float, ptr addrspace(3) %.10.at, align 4
  %.11 = fadd float %.9, %.10
  %.12.at = getelementptr float, ptr %sum, i64 0
  store float %.11, ptr %.12.at, align 4
  br label %for.8.latch
for.8.latch:
  %i.next = add i64 %i, 1
  br label %for.8.head
for.8.end:
  %.13.at = getelementptr float, ptr %sum, i64 0
  %.13 = load float, ptr %.13.at, align 4
  %.14.at = getelementptr float, ptr addrspace(1) %S, i64 %g
  store float %.13, ptr addrspace(1) %.14.at, align 4
  br label %if.6.end
if.6.end:
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier0()

attributes #0 = { nounwind }
attributes #1 = { nounwind readnone willreturn }
