target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @halves(ptr addrspace(1) noalias readonly align 2 nonnull dereferenceable(128) %A, ptr addrspace(1) noalias readonly align 2 nonnull dereferenceable(128) %B, ptr addrspace(1) noalias writeonly align 2 nonnull dereferenceable(128) %C, ptr addrspace(1) noalias writeonly align 4 nonnull dereferenceable(256) %D, i16 %x.passed, i8 %add.passed) #0 {
entry:
  %x = bitcast i16 %x.passed to half
  %add = icmp ne i8 %add.passed, 0
  %bx.id = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x(), !range !{i32 0, i32 4}
  %bx = zext i32 %bx.id to i64
  %tx.id = call i32 @llvm.nvvm.read.ptx.sreg.tid.x(), !range !{i32 0, i32 4}
  %tx = zext i32 %tx.id to i64
  %.1 = mul i64 %bx, 4
  %.2 = add i64 %.1, %tx
  %.3 = mul i64 %.2, 4
  %.4.at = getelementptr half, ptr addrspace(1) %A, i64 %.3
  %.4 = load <4 x half>, ptr addrspace(1) %.4.at, align 2
  %.5.at = getelementptr half, ptr addrspace(1) %B, i64 %.3
  %.5 = load <4 x half>, ptr addrspace(1) %.5.at, align 2
  %.6 = fmul <4 x half> %.4, %.5
  %.7.lane = insertelement <4 x half> poison, half %x, i64 0
  %.7 = shufflevector <4 x half> %.7.lane, <4 x half> poison, <4 x i32> zeroinitializer
  %.8 = fadd <4 x half> %.6, %.7
  %.9.at = getelementptr half, ptr addrspace(1) %C, i64 %.3
  store <4 x half> %.8, ptr addrspace(1) %.9.at, align 2
  br label %for.10.entry
for.10.entry:
  br label %for.10.head
for.10.head:
  %j = phi i64 [ 0, %for.10.entry ], [ %j.next, %for.10.latch ]
  %j.more = icmp slt i64 %j, 4
  br i1 %j.more, label %for.10.body, label %for.10.end
for.10.body:
  br i1 %add, label %if.11.then, label %if.11.else
if.11.then:
  %.12 = add i64 %.3, %j
  %.13.at = getelementptr half, ptr addrspace(1) %A, i64 %.12
  %.13 = load half, ptr addrspace(1) %.13.at, align 2
  %.14 = add i64 %.3, %j
  %.15.at = getelementptr half, ptr addrspace(1) %B, i64 %.14
  %.15 = load half, ptr addrspace(1) %.15.at, align 2
  %.16 = fadd half %.13, %.15
  %.17.better = fcmp ogt half %x, %.16
  %.17.nan = fcmp uno half %x, %x
  %.17.take = or i1 %.17.better, %.17.nan
  %.17 = select i1 %.17.take, half %x, half %.16
  %.18 = fpext half %.17 to float
  %.19 = add i64 %.3, %j
  %.20.at = getelementptr float, ptr addrspace(1) %D, i64 %.19
  store float %.18, ptr addrspace(1) %.20.at, align 4
  br label %if.11.end
if.11.else:
  %.21 = add i64 %.3, %j
  %.22.at = getelementptr half, ptr addrspace(1) %A, i64 %.21
  %.22 = load half, ptr addrspace(1) %.22.at, align 2
  %.23 = add i64 %.3, %j
  %.24.at = getelementptr half, ptr addrspace(1) %B, i64 %.23
  %.24 = load half, ptr addrspace(1) %.24.at, align 2
  %.25 = fdiv half %.22, %.24
  %.26 = fsub half %.25, 0xH2E66
  %.27 = fpext half %.26 to float
  %.28 = add i64 %.3, %j
  %.29.at = getelementptr float, ptr addrspace(1) %D, i64 %.28
  store float %.27, ptr addrspace(1) %.29.at, align 4
  br label %if.11.end
if.11.end:
  br label %for.10.latch
for.10.latch:
  %j.next = add i64 %j, 1
  br label %for.10.head
for.10.end:
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()

attributes #0 = { nounwind }
attributes #1 = { nounwind readnone willreturn }

!nvvm.annotations = !{!0}
!0 = !{ptr @halves, !"maxntidx", i32 4, !"maxntidy", i32 1, !"maxntidz", i32 1}
