target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @vector_add(ptr addrspace(1) noalias readonly align 4 %A, ptr addrspace(1) noalias readonly align 4 %B, ptr addrspace(1) noalias writeonly align 4 %C, i64 %n, i64 %groups) #0 {
entry:
  %bx.id = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x(), !range !{i32 0, i32 2147483647}
  %bx = zext i32 %bx.id to i64
  %tx.id = call i32 @llvm.nvvm.read.ptx.sreg.tid.x(), !range !{i32 0, i32 64}
  %tx = zext i32 %tx.id to i64
  %.1 = mul i64 %bx, 64
  %.2 = add i64 %.1, %tx
  %.3 = icmp slt i64 %.2, %n
  br i1 %.3, label %if.4.then, label %if.4.end
if.4.then:
  %.5 = mul i64 %bx, 64
  %.6 = add i64 %.5, %tx
  %.7.at = getelementptr float, ptr addrspace(1) %A, i64 %.6
  %.7 = load float, ptr addrspace(1) %.7.at, align 4
  %.8 = mul i64 %bx, 64
  %.9 = add i64 %.8, %tx
  %.10.at = getelementptr float, ptr addrspace(1) %B, i64 %.9
  %.10 = load float, ptr addrspace(1) %.10.at, align 4
  %.11 = fadd float %.7, %.10
  %.12 = mul i64 %bx, 64
  %.13 = add i64 %.12, %tx
  %.14.at = getelementptr float, ptr addrspace(1) %C, i64 %.13
  store float %.11, ptr addrspace(1) %.14.at, align 4
  br label %if.4.end
if.4.end:
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()

attributes #0 = { nounwind }
attributes #1 = { nounwind readnone willreturn }

!nvvm.annotations = !{!0}
!0 = !{ptr @vector_add, !"maxntidx", i32 64, !"maxntidy", i32 1, !"maxntidz", i32 1}
